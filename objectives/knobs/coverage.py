"""Which options of scale-across training are knobs here, and which are not modelled yet.

References:
    The design space of "ScaleAcross Explorer" (arXiv 2605.24326): placement, scheduling,
    microbatching, chunking and network layer, with the systems that each option comes from.
"""

from __future__ import annotations

from collections.abc import Mapping

KNOB_OF_OPTION: Mapping[str, str] = {
    # placement
    "which dimension crosses the building": "dimension_order",
    "DP, FSDP or PP across": "dimension_order",
    "CP, EP, TP across as negative controls": "dimension_order",
    "sharded inside a building and replicated across": "data_parallel_replicate_degree",
    "order of dimensions": "dimension_order",
    # scheduling
    "GPipe": "pipeline_parallel_schedule",
    "1F1B": "pipeline_parallel_schedule",
    "interleaved 1F1B": "pipeline_parallel_schedule",
    "breadth-first": "pipeline_parallel_schedule",
    "ZB-H1": "pipeline_parallel_schedule",
    "ZB-2p": "pipeline_parallel_schedule",
    "ZB-V": "pipeline_parallel_schedule",
    "V-Half": "pipeline_parallel_schedule",
    "V-Min": "pipeline_parallel_schedule",
    "DualPipe": "pipeline_parallel_schedule",
    # microbatching
    "microbatch size": "microbatch_size",
    "microbatch count": "data_parallel_shard_degree",
    "count below the stage count": "microbatch_size",
    # chunking
    "chunks per rank": "virtual_stages_per_rank",
    "layers per chunk": "virtual_stages_per_rank",
    "one layer fewer on the first and last stage": "pipeline_parallel_last_stage_less_layers",
    "V placement": "pipeline_parallel_schedule",
    # overlap
    "FSDP prefetch depth": "fsdp_prefetch_depth",
    "reduce-scatter overlap": "overlap_gradient_reduction",
    "all-gather overlap": "overlap_parameter_gather",
    "asynchronous P2P": "async_pipeline_p2p",
    "no reshard after forward": "fsdp_reshard_after_forward",
    "asynchronous TP": "async_tensor_parallel",
    # transport, load balancing, congestion control
    "RoCE go-back-N": "transport",
    "selective repeat": "transport",
    "erasure coded": "transport",
    "n TCP connections": "connections_per_pair",
    "QPs per pair": "connections_per_pair",
    "ECMP": "load_balancing",
    "E-ECMP with QP scaling": "load_balancing",
    "flowlet or adaptive": "load_balancing",
    "packet spraying": "load_balancing",
    "DCQCN": "congestion_control",
    "receiver-driven admission": "congestion_control",
    "near-source signalling": "congestion_control",
    "distance-aware": "congestion_control",
    "bytes in flight": "bytes_in_flight",
    # collectives
    "ring": "collective_algorithm",
    "tree": "collective_algorithm",
    "hierarchical": "collective_algorithm",
    "in-network reduction": "in_network_reduction",
    "chunked across sites": "cross_site_chunks",
    # beside the five dimensions
    "recompute": "activation_checkpoint_mode",
    "activation offload": "activation_offload_fraction",
    "optimizer offload": "optimizer_offload_fraction",
    "precision": "precision",
    "gradient dtype": "gradient_dtype",
    "reduction once per step or per microbatch": "gradient_reduction",
    "P2P scatter-gather": "p2p_scatter_gather",
}
"""Options of the published design space and the knob that sets each."""

NOT_MODELLED: Mapping[str, str] = {
    "which stage cut sits on the long link": (
        "stages are placed in order and split evenly over equal buildings, so the cut is the "
        "middle one"
    ),
    "PP across with FSDP inside one building only": (
        "each dimension has one stride; a group that is laid out differently in one building "
        "has none"
    ),
    "uneven GPU counts and types per building": (
        "the analytical backend refuses unequal buildings; batch and layer shares per building "
        "need a model of unequal stages"
    ),
    "depth-first with N contiguous microbatches": (
        "interleaved 1F1B is the case N = stages; other N need a schedule simulation"
    ),
    "latency-aware greedy or solver order": "needs a schedule simulation (CrossPipe)",
    "time-sharing of the long link between DP groups": (
        "all groups are taken to use the cut at the same time (Atlas shifts them)"
    ),
    "uneven split of layers beyond the first and last stage": (
        "layers divide evenly over all other chunks"
    ),
    "embedding and head placement": "the embedding is on the first stage, the head on the last",
    "optimizer-state sync bypass": "the optimizer step waits for all gradients",
    "path pinning": "would need the topology of paths, of which only the cut is known",
    "optical circuit switching": "circuits change in 10 ms to 10 s; the cut is fixed for a step",
    "quantised collectives": (
        "change the mathematics (ZeRO++); the payload function exists, the statistical cost not"
    ),
    "compressed gradients": "change the mathematics; the statistical cost is not modelled",
    "low-frequency synchronisation": (
        "changes the mathematics (DiLoCo); the statistical cost is not modelled"
    ),
    "parameter offload": "only activations and optimizer states go to the host",
    "recompute and offload per block": "one setting for all blocks (AutoHete chooses each)",
    "optimizer sharding inside the building only": (
        "is the shard and replicate split; a split for the optimizer alone is not a knob"
    ),
}
"""Options that no knob sets yet, and why."""
