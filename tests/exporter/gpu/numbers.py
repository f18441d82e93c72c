"""A reading as a mapping that is easy to compare."""

from exporter.gpu.reading import Reading


def numbers(reading: Reading) -> dict[str, float]:
    """Answer the numbers by the end of their metric's name; `throttled/power_cap` where it has a label of its own."""
    return {
        f"{value.metric.name.removeprefix('llm_gpu_')}{'/' * bool(value.detail)}{value.detail}": value.number
        for value in reading.values
    }
