"""The models to be trained: sizes from Hugging Face configs, and parameter counts."""

from __future__ import annotations

from objectives.model.hf_config import load_model, parse_hf_config, read_hf_config
from objectives.model.model import MLA, Model, MoE

__all__ = ["MLA", "MoE", "Model", "load_model", "parse_hf_config", "read_hf_config"]
