"""The experiments of "Sketch-Flip-Merge: Mergeable Sketches for Private Distinct Counting", section "Evaluation".

`python -m benchmarks.paper figure1 ... figure5 | all`; docs/paper.md shows what they gave.
"""
