"""Recorded series about cards, in promtool: joined to the replicas and models that they serve."""

from pathlib import Path

from exporter.fleet import Fleet, Replica
from running.tools import Tool
from tests.prometheus.promtool import Case, Expect, Rules, run, samples

RULES = Rules(fleet=Fleet(replicas=(Replica(name="a", url="http://127.0.0.1:8000"),)), stages=("hardware",))
A, B, C = (f'gpu="GPU-{name}",instance="h1",job="gpu"' for name in "abc")


def claim(replica: str, card: str, model: str = "m", instance: str = "h1") -> dict[str, str]:
    return {
        f'llm_replica_gpu_info{{model="{model}",replica="{replica}",gpu="GPU-{card}",instance="{instance}"}}': "1x60"
    }


def recorded(name: str, **values: float) -> Expect:
    """Expect values by replica, or by model if the name is the model's."""
    head = 'model="m",replica=' if name.startswith("replica:") else "model="
    samples_of = {f'{{{head}"{key}"}}': value for key, value in values.items()}
    return Expect(at="8m", expr=f"round({name}, 1e-6)", samples=samples_of)


CASES = [
    Case(
        claim="a replica is as busy as its cards are on average, and has as much memory left as the fullest one",
        series={
            **claim("r", "a"),
            **claim("r", "b"),
            **claim("s", "c"),
            f"llm_gpu_utilization_ratio{{{A}}}": "0.9x60",
            f"llm_gpu_utilization_ratio{{{B}}}": "0.5x60",
            f"llm_gpu_utilization_ratio{{{C}}}": "0.1x60",
            f"llm_gpu_memory_free_bytes{{{A}}}": "7000x60",
            f"llm_gpu_memory_free_bytes{{{B}}}": "3000x60",
            f"llm_gpu_memory_free_bytes{{{C}}}": "9000x60",
        },
        expect=[
            recorded("replica:llm_gpu_utilization:avg", r=0.7, s=0.1),
            recorded("model:llm_gpu_utilization:avg", m=0.5),
            recorded("replica:llm_gpu_memory_free_bytes:min", r=3000, s=9000),
        ],
    ),
    Case(
        claim="tokens are divided by the joules of the cards, each of them once",
        series={
            **claim("r", "a"),
            **claim("s", "a"),
            **claim("r", "b"),
            'llm_generation_tokens_total{model="m",replica="r",engine="vllm"}': samples((60, 3000)),
            'llm_generation_tokens_total{model="m",replica="s",engine="vllm"}': samples((60, 1000)),
            f"llm_gpu_energy_joules_total{{{A}}}": samples((60, 5000)),
            f"llm_gpu_power_watts{{{A}}}": "499x60",
            f"llm_gpu_power_watts{{{B}}}": "300x60",
        },
        expect=[
            recorded("model:llm_gpu_power_watts:avg5m", m=800),
            recorded("model:llm_tokens_per_joule:ratio5m", m=0.5),
        ],
    ),
    Case(
        claim="the tokens of a replica whose cards nobody knows have no joules",
        series={
            **claim("r", "a"),
            'llm_generation_tokens_total{model="m",replica="r"}': samples((60, 1000)),
            'llm_generation_tokens_total{model="m",replica="elsewhere"}': samples((60, 9000)),
            'llm_generation_tokens_total{model="n",replica="n"}': samples((60, 9000)),
            f"llm_gpu_power_watts{{{A}}}": "200x60",
        },
        expect=[recorded("model:llm_tokens_per_joule:ratio5m", m=0.5)],
    ),
    Case(
        claim="two exporters of one fleet.yml show the same claim, and a card that is read twice is one card",
        series={
            **claim("r", "a"),
            **claim("r", "a", instance="h2"),
            'llm_gpu_power_watts{gpu="GPU-a",instance="h1"}': "200x60",
            'llm_gpu_power_watts{gpu="GPU-a",instance="h2"}': "200x60",
        },
        expect=[recorded("model:llm_gpu_power_watts:avg5m", m=200)],
    ),
    Case(
        claim="an exporter that has not learned a model yet doubles no claim, and one that nobody learned is a claim",
        series={
            **claim("r", "a"),
            **claim("r", "a", model="", instance="h2"),
            **claim("s", "b", model="", instance="h2"),
        },
        expect=[
            Expect(
                at="8m",
                expr="replica_gpu:llm_gpu_claims:max",
                samples={
                    'replica_gpu:llm_gpu_claims:max{model="m",replica="r",gpu="GPU-a"}': 1,
                    'replica_gpu:llm_gpu_claims:max{replica="s",gpu="GPU-b"}': 1,
                },
            )
        ],
    ),
    Case(
        claim="an instance of a divided card is joined by card and instance, never to the whole card's numbers",
        series={
            'llm_replica_gpu_info{model="m",replica="r",gpu="GPU-a",partition="3"}': "1x60",
            f'llm_gpu_memory_free_bytes{{{A},partition="3"}}': "1000x60",
            f'llm_gpu_memory_free_bytes{{{A},partition="5"}}': "10x60",
            f"llm_gpu_utilization_ratio{{{A}}}": "0.9x60",
        },
        expect=[recorded("replica:llm_gpu_memory_free_bytes:min", r=1000), recorded("replica:llm_gpu_utilization:avg")],
    ),
    Case(
        claim="without cards nothing is recorded",
        series={'llm_generation_tokens_total{model="m",replica="r"}': samples((60, 1000))},
        expect=[recorded("model:llm_tokens_per_joule:ratio5m"), recorded("replica_gpu:llm_gpu_claims:max")],
    ),
]


def test_cards_are_joined_to_whom_they_serve(promtools: Tool, tmp_path: Path) -> None:
    run(promtools, tmp_path, RULES, CASES)
