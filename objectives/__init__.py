"""The domain: what is tuned in scale-across LLM training, and the backends that measure it."""
