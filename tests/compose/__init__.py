"""Tests of compose.yaml: what it says, and the product brought up from it by a real Docker daemon."""
