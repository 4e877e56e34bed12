from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.physics import memory
from objectives.physics.activations import (
    FULL,
    NONE,
    SELECTIVE,
    Keeping,
    Shape,
    attention_bytes,
    layer_bytes,
    mlp_bytes,
    working_bytes,
)
from objectives.physics.blocks import Attention, Experts, Mlp
from objectives.physics.memory import Sharding

GIB = 2**30

# Korthikanti et al., arXiv 2205.05198, figures 1 and 7 (shared with the validation data):
# model: hidden, layers, heads, microbatch, TP, PP, virtual stages; sequences of 2,048.
MODELS = {
    "megatron-22B": (6144, 48, 64, 4, 8, 1, 1),
    "gpt3-175B": (12288, 96, 96, 1, 8, 8, 3),
    "turing-530B": (20480, 105, 128, 1, 8, 35, 3),
    "megatron-1T": (25600, 128, 160, 1, 8, 64, 1),
}

# GiB of parameters with optimizer, and of activations without and with both techniques.
FIGURE_1 = {
    "megatron-22B": (45.5625, 59.25, 9.5625),
    "gpt3-175B": (45.5625, 66.84375, 12.3515625),
    "turing-530B": (31.640625, 114.0234375, 23.076171875),
    "megatron-1T": (32.958984375, 131.25, 26.5625),
}

# Percent of the activations without: sequence parallelism, selective, both, full recomputation.
FIGURE_7 = {
    "megatron-22B": (66.84, 49.42, 16.18, 7.64),
    "gpt3-175B": (62.04, 56.53, 18.49, 8.71),
    "turing-530B": (58.31, 62.04, 20.27, 9.42),
    "megatron-1T": (58.31, 62.04, 20.27, 9.42),
}


def _parts(name: str) -> tuple[Attention, Mlp]:
    hidden, _, heads, *_ = MODELS[name]
    width = hidden // heads
    attention = Attention(
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        qk_dim=width,
        v_dim=width,
        latent=None,
        parameters=4 * hidden**2,
    )
    return attention, Mlp(hidden=hidden, width=4 * hidden, gated=False, parameters=8 * hidden**2)


def _activations(name: str, *, core_kept: bool, sequence_parallel: bool, mode: int = NONE) -> float:
    """Bytes of the first stage, where p (1 + (p - 1)/(p v)) microbatches of L/p layers wait.

    Recomputing the core of attention, as the paper does, keeps what fused attention keeps but
    for the latter's log-sum-exp, four bytes per head and token.
    """
    _, layers, _, microbatch, tensor, stages, chunks = MODELS[name]
    shape = Shape(
        tokens=np.array([2048.0 * microbatch]),
        sequence_length=2048,
        tensor=np.array([float(tensor)]),
        mode=mode,
        operand_bytes=2.0,
    )
    keeping = Keeping(
        norm_inputs=True,
        fused_attention=not core_kept,
        dropout=True,
        sequence_parallel=sequence_parallel,
    )
    more = 1 + (stages - 1) / (stages * chunks) if chunks > 1 else 1
    return float(layer_bytes(shape, *_parts(name), keeping)[0] * layers * more)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_and_optimizer_of_figure_1(name: str) -> None:
    """2 bytes of weight, 4 of gradient, 12 of optimizer; 12 h^2 a layer over TP and PP."""
    hidden, layers, _, _, tensor, stages, _ = MODELS[name]
    parameters = 12 * hidden**2 * layers / tensor / stages
    whole = _sharding(shards=1)
    total = (
        memory.weight_bytes(whole, parameters)
        + memory.gradient_bytes(whole, parameters)
        + memory.optimizer_bytes(whole, parameters)
    )
    assert total / GIB == pytest.approx(FIGURE_1[name][0], rel=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_activations_of_figure_1(name: str) -> None:
    _, without, both = FIGURE_1[name]
    plain = _activations(name, core_kept=True, sequence_parallel=False)
    assert plain / GIB == pytest.approx(without, rel=1e-6)
    techniques = _activations(name, core_kept=False, sequence_parallel=True)
    assert techniques / GIB == pytest.approx(both, rel=0.002)


@pytest.mark.parametrize("name", MODELS)
def test_activations_of_figure_7(name: str) -> None:
    plain = _activations(name, core_kept=True, sequence_parallel=False)
    found = (
        _activations(name, core_kept=True, sequence_parallel=True),
        _activations(name, core_kept=False, sequence_parallel=False),
        _activations(name, core_kept=False, sequence_parallel=True),
        _activations(name, core_kept=True, sequence_parallel=False, mode=FULL),
    )
    percent = tuple(100 * value / plain for value in found)
    assert percent == pytest.approx(FIGURE_7[name], abs=0.15)


def _sharding(
    *, shards: float, reshard: bool = False, often: bool = False, offloaded: float = 0.0
) -> Sharding:
    return Sharding(
        shards=np.array([float(shards)]),
        reshard=np.array([reshard]),
        reduce_often=np.array([often]),
        gradient_bytes=np.array([4.0]),
        offloaded=np.array([offloaded]),
    )


@given(
    parameters=st.integers(1, 10**12),
    shards=st.integers(1, 4096),
    reshard=st.booleans(),
    often=st.booleans(),
)
def test_all_shards_together_hold_everything_once(
    parameters: int, shards: int, reshard: bool, often: bool
) -> None:
    """What is sharded sums to what one rank alone would hold; what is not is held by each."""
    divided = _sharding(shards=shards, reshard=reshard, often=often)
    alone = _sharding(shards=1, reshard=reshard, often=often)
    for part, is_divided in (
        (memory.weight_bytes, reshard),
        (memory.gradient_bytes, often),
        (memory.optimizer_bytes, True),
    ):
        copies = 1 if is_divided else shards
        together = shards * part(divided, parameters)
        assert together == pytest.approx(copies * part(alone, parameters))


def test_offloaded_states_leave_the_device() -> None:
    half = memory.optimizer_bytes(_sharding(shards=4, offloaded=0.5), 1e9)
    assert half == pytest.approx(12 * 1e9 / 4 / 2)


def test_only_divided_layers_are_gathered() -> None:
    layer = 1e9
    whole = memory.gathered_bytes(_sharding(shards=1, reshard=True), layer, prefetched=1)
    divided = memory.gathered_bytes(_sharding(shards=8, reshard=True), layer, prefetched=2)
    assert whole == 0
    assert divided == pytest.approx(3 * 2 * layer)


LLAMA = (
    Attention(
        hidden=16384,
        heads=128,
        kv_heads=8,
        qk_dim=128,
        v_dim=128,
        latent=None,
        parameters=570_425_344,
    ),
    Mlp(hidden=16384, width=53248, gated=True, parameters=2_617_245_696),
)


def _shape(mode: int = NONE, *, tensor: float = 8, operand_bytes: float = 2.0) -> Shape:
    return Shape(
        tokens=np.array([8192.0]),
        sequence_length=8192,
        tensor=np.array([float(tensor)]),
        mode=mode,
        operand_bytes=operand_bytes,
    )


def test_a_layer_of_llama_405b() -> None:
    """Two normalisation outputs, Q and O, K and V, and three MLP tensors: 465 MB on TP 8."""
    elements = 4 * 16384 + 2 * 1024 + 3 * 53248
    log_sum_exp = 8192 * 4 * 128 / 8
    kept = layer_bytes(_shape(), *LLAMA, Keeping())
    assert kept == pytest.approx(2 * 8192 * elements / 8 + log_sum_exp)


def test_key_value_heads_are_copied_beyond_their_number() -> None:
    eight = attention_bytes(_shape(tensor=8), LLAMA[0], Keeping())
    sixteen = attention_bytes(_shape(tensor=16), LLAMA[0], Keeping())
    keys_and_values = 8192 * 2 * 2 * 128
    assert sixteen == pytest.approx((eight - keys_and_values) / 2 + keys_and_values)


@pytest.mark.parametrize("keeping", [Keeping(), Keeping(norm_inputs=True, dropout=True)])
def test_recomputing_more_keeps_less(keeping: Keeping) -> None:
    kept = [layer_bytes(_shape(mode), *LLAMA, keeping) for mode in (NONE, SELECTIVE, FULL)]
    assert kept == sorted(kept, reverse=True)


def test_eight_bit_operands_take_half() -> None:
    saved = mlp_bytes(_shape(), LLAMA[1], Keeping()) - mlp_bytes(
        _shape(operand_bytes=1.0), LLAMA[1], Keeping()
    )
    assert saved == pytest.approx(8192 * (16384 + 53248) / 8)


def test_the_input_of_every_visit_of_an_expert_is_kept() -> None:
    expert = Mlp(hidden=16384, width=4096, gated=True, parameters=3 * 16384 * 4096)

    def kept(per_token: int) -> np.ndarray:
        experts = Experts(
            expert=expert,
            count=64,
            per_token=per_token,
            nodes_per_token=per_token,
            shared=None,
            router_parameters=0,
        )
        return layer_bytes(_shape(), LLAMA[0], experts, Keeping())

    visit = 8192 * (2 * 16384 + 6 * 4096) / 8
    assert kept(5) - kept(4) == pytest.approx(visit)


def test_work_on_a_recomputed_layer_holds_it_whole() -> None:
    again = working_bytes(_shape(FULL), *LLAMA) - working_bytes(_shape(NONE), *LLAMA)
    assert again == pytest.approx(layer_bytes(_shape(NONE), *LLAMA, Keeping()))


def test_logits_wait_for_their_backward_pass() -> None:
    one = memory.logits_bytes(np.array([8192.0]), 16032.0, kept=1)
    four = memory.logits_bytes(np.array([8192.0]), 16032.0, kept=4)
    assert one == pytest.approx(6 * 8192 * 16032)
    assert four - one == pytest.approx(3 * 2 * 8192 * 16032)
