"""Writes a small random model that a real llama-server loads: in, a path and a vocabulary size; out, a GGUF file.

What it generates is noise; its metrics, slots, streaming and timing are those of a real engine.
The tokens are printable ASCII, because llama-server ends a stream with an error when the text is not valid UTF-8.
"""

import string
from pathlib import Path

import gguf
import numpy as np

_WIDTH, _FEED_FORWARD, _LAYERS, _HEADS, _KV_HEADS, _CONTEXT = 128, 256, 2, 4, 2, 4096
_CONTROL = ("<s>", "</s>", "<pad>")
_MERGES = ("t h", "th e", "Ġ the", "q u", "i n", "e r", "a n", "Ġ a")
_SPACE_AND_NEWLINE = ("Ġ", "Ċ")  # byte-level BPE spells these two bytes so
_VOCABULARY = 256


def write(path: Path, *, vocabulary: int = _VOCABULARY) -> Path:
    """Write the model; a large vocabulary makes it slow to load, because llama-server sorts tokens one by one."""
    partial = path.with_suffix(".partial")  # a test that was interrupted must not leave half a model under the name
    writer = gguf.GGUFWriter(str(partial), "llama")
    _describe(writer, vocabulary)
    _add_tokenizer(writer, vocabulary)
    _add_weights(writer, vocabulary)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return partial.rename(path)


def _describe(writer: gguf.GGUFWriter, vocabulary: int) -> None:
    writer.add_name("tiny")
    writer.add_context_length(_CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_FEED_FORWARD)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(vocabulary)


def _add_tokenizer(writer: gguf.GGUFWriter, vocabulary: int) -> None:
    printable = (*string.digits, *string.ascii_letters, *string.punctuation, *_SPACE_AND_NEWLINE)
    merged = (merge.replace(" ", "") for merge in _MERGES)
    tokens = [*_CONTROL, *printable, *merged]
    tokens += [f"word{number}" for number in range(vocabulary - len(tokens))]
    kinds = [gguf.TokenType.CONTROL] * len(_CONTROL) + [gguf.TokenType.NORMAL] * (vocabulary - len(_CONTROL))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(list(_MERGES))
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_pad_token_id(2)


def _add_weights(writer: gguf.GGUFWriter, vocabulary: int) -> None:
    random = np.random.default_rng(0)
    key_width = _KV_HEADS * _WIDTH // _HEADS
    shapes = {
        "attn_q": (_WIDTH, _WIDTH),
        "attn_k": (key_width, _WIDTH),
        "attn_v": (key_width, _WIDTH),
        "attn_output": (_WIDTH, _WIDTH),
        "ffn_gate": (_FEED_FORWARD, _WIDTH),
        "ffn_up": (_FEED_FORWARD, _WIDTH),
        "ffn_down": (_WIDTH, _FEED_FORWARD),
    }
    layers = {f"blk.{layer}.{name}": shape for layer in range(_LAYERS) for name, shape in shapes.items()}
    for name, shape in {"token_embd": (vocabulary, _WIDTH), "output": (vocabulary, _WIDTH), **layers}.items():
        writer.add_tensor(f"{name}.weight", (random.standard_normal(shape) * 0.02).astype(np.float32))
    norms = [f"blk.{layer}.{name}" for layer in range(_LAYERS) for name in ("attn_norm", "ffn_norm")]
    for name in ("output_norm", *norms):
        writer.add_tensor(f"{name}.weight", np.ones(_WIDTH, np.float32))
