"""The paper's other methods (docs/methods.md): its mechanisms, other bitmaps, and logic on noisy bits."""

from sfm_stream.methods.layouts import BloomFilter, LinearCounting, LiquidLegions
from sfm_stream.methods.logic import bit_and, bit_not, bit_or, bit_xor, or_by_xor, union, union_by_xor
from sfm_stream.methods.mechanisms import MechanismFamily, pagh_stausholm, symmetric, xor
from sfm_stream.methods.randomized_response import privatize
from sfm_stream.sketch.layout import BitmapLayout
from sfm_stream.sketch.mechanism import Mechanism
from sfm_stream.sketch.noisy_bits import NoisyBitmap, NoisyBits
from sfm_stream.sketch.raw import RawBitmap

__all__ = [
    "BitmapLayout",
    "BloomFilter",
    "LinearCounting",
    "LiquidLegions",
    "Mechanism",
    "MechanismFamily",
    "NoisyBitmap",
    "NoisyBits",
    "RawBitmap",
    "bit_and",
    "bit_not",
    "bit_or",
    "bit_xor",
    "or_by_xor",
    "pagh_stausholm",
    "privatize",
    "symmetric",
    "union",
    "union_by_xor",
    "xor",
]
