"""Tests of the whole path against a real llama-server: in, streaming requests; out, the same counts in Prometheus."""
