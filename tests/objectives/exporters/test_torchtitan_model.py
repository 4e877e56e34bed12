import pytest

from autotune import Unsupported
from objectives.exporters.torchtitan_model import flavor, version
from objectives.model import Model, parse_hf_config, read_hf_config


def model(preset: str, **changes: object) -> Model:
    return parse_hf_config({**read_hf_config(preset), **changes})


@pytest.mark.parametrize(
    ("preset", "changes", "name", "expected"),
    [
        ("llama3-8b", {}, "llama3", "8B"),
        ("llama3-70b", {}, "llama3", "70B"),
        ("llama3.1-405b", {}, "llama3", "405B"),
        ("qwen3-235b-a22b", {}, "qwen3", "235B-A22B"),
        ("deepseek-v3", {"num_nextn_predict_layers": 0}, "deepseek_v3", "671B"),
    ],
)
def test_flavors_are_found_by_size(
    preset: str, changes: dict[str, object], name: str, expected: str
) -> None:
    found = flavor(model(preset, **changes))
    assert (found["name"], found["flavor"]) == (name, expected)


@pytest.mark.parametrize(
    ("preset", "changes", "words"),
    [
        ("llama3-8b", {"num_hidden_layers": 31}, "no flavor of these sizes .*8B, 70B, 405B"),
        ("llama3-8b", {"tie_word_embeddings": True}, "no flavor of these sizes"),
        ("mixtral-8x22b", {}, r"flavors of MixtralForCausalLM: none"),
        ("deepseek-v3", {}, "num_nextn_predict_layers is 1"),
    ],
)
def test_other_models_are_refused(preset: str, changes: dict[str, object], words: str) -> None:
    with pytest.raises(Unsupported, match=words):
        flavor(model(preset, **changes))


def test_facts_of_the_version() -> None:
    facts = version().facts
    assert "Interleaved1F1B" in facts["schedules"]
    assert {"llama3", "deepseek_v3", "qwen3"} == {known["name"] for known in facts["models"]}
