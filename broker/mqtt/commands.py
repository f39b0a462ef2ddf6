"""The command that measures the MQTT gateway."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer


def mqtt_bench(
    messages: Annotated[int, typer.Option(min=100, help="How many messages devices publish.")] = 20_000,
    subscriptions: Annotated[int, typer.Option(min=50, help="Content subscriptions, in fifties.")] = 1_000,
    qos: Annotated[int, typer.Option(min=0, max=1, help="Of the devices' messages.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure the MQTT gateway beside plain mosquitto, in one run.

    Starts a mosquitto and a broker on free ports, and stops them. Every
    message matches one of the subscriptions.

    \b
    Examples:
      mercast mqtt-bench
      mercast mqtt-bench --messages 5000 --qos 0 --json
    """
    import json
    from dataclasses import asdict

    from broker.mqtt.bench import run_bench
    from broker.progress import elapsed_time_bar

    with elapsed_time_bar() as show:
        result = run_bench(messages, subscriptions, qos, show)
    if as_json:
        print(json.dumps(asdict(result)))
        return
    print(f"aiomqtt to mosquitto alone         {result.alone_per_s:10,.0f} messages a second (QoS {result.qos})")
    print(f"through the gateway and a broker   {result.through_per_s:10,.0f} messages a second, delivered")
    print(f"ratio                              {result.ratio:10.2f}")
    print(f"aiomqtt's processor time           {result.alone_cpu_us:10,.0f} µs a message")
    if result.through_cpu_us is not None:
        print(f"gateway's and broker's             {result.through_cpu_us:10,.0f} µs a message")
    print(f"{result.subscriptions:,} subscriptions in place in     {result.subscribing_s:10.2f} s")
    for reason, count in result.drops.items():
        print(f"dropped, {reason}: {count:,}")


COMMANDS: dict[str, Callable[..., None]] = {"mqtt-bench": mqtt_bench}
