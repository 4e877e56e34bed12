"""How well senders share a full long link: utilisation of each kind of congestion control.

Only a link that its senders could overfill needs control; elsewhere the utilisation is 1.
"""

from __future__ import annotations

import numpy as np

from objectives.physics.arrays import FloatArray, Numbers


def sawtooth_utilisation(*, buffer_bytes: Numbers, bandwidth_delay_bytes: Numbers) -> FloatArray:
    """Utilisation of a link under halve-on-congestion control with a buffer before it.

    The window swings between (1+b)/2 and 1+b bandwidth-delay products, with b the buffer in
    such products; below one the link idles. That gives 3/4 without a buffer and 1 from b = 1.
    The flows of one collective start together, so they swing together, as one flow.

    Args:
        buffer_bytes: Queue that builds up before senders are told.
        bandwidth_delay_bytes: Link rate times the time until they react.

    References:
        Appenzeller, Keslassy and McKeown, "Sizing Router Buffers", SIGCOMM 2004, section 2
        (one flow, and many synchronised flows).
    """
    product = np.maximum(np.asarray(bandwidth_delay_bytes, dtype=np.float64), 1.0)
    b = np.minimum(np.asarray(buffer_bytes, dtype=np.float64) / product, 1.0)
    sent = (1 + b) ** 2 * 3 / 8
    lasted = (1 - b) / 2 + ((1 + b) ** 2 - 1) / 2
    return np.asarray(sent / lasted, dtype=np.float64)


def pause_headroom_bytes(
    *, rate_bytes_per_s: Numbers, round_trip_s: Numbers, packet_bytes: Numbers
) -> FloatArray:
    """Buffer that a lossless (PFC) port needs for what arrives after it said stop.

    Args:
        rate_bytes_per_s: Of the port.
        round_trip_s: To the sender it pauses.
        packet_bytes: Largest packet; two of them may be under way at the ends.

    References:
        IEEE 802.1Qbb, priority-based flow control.
    """
    rate = np.asarray(rate_bytes_per_s, dtype=np.float64)
    return np.asarray(rate * round_trip_s + 2 * np.asarray(packet_bytes), dtype=np.float64)
