"""A device that publishes as fast as aiomqtt can, in its own process. Prints the duration.

python -m broker.mqtt.bench_publisher PORT COUNT QOS
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from random import Random

import aiomqtt

from broker.mqtt.bench_workload import TOPIC, reading

AT_ONCE = 100


async def publish(port: int, count: int, qos: int) -> tuple[float, float]:
    """Returns the seconds until the MQTT broker has acknowledged all messages, and the processor time in seconds."""
    random = Random(7)
    readings = [reading(random, number) for number in range(count)]
    # MQTT 5, as the gateway uses.
    version = aiomqtt.ProtocolVersion.V5
    async with aiomqtt.Client("127.0.0.1", port, protocol=version, max_inflight_messages=AT_ONCE) as client:
        client.pending_calls_threshold = count
        start, cpu = time.perf_counter(), time.process_time()
        for first in range(0, count, AT_ONCE):
            some = readings[first : first + AT_ONCE]
            await asyncio.gather(
                *(client.publish(TOPIC.format(room=each.room), each.payload, qos, timeout=60) for each in some)
            )
        return time.perf_counter() - start, time.process_time() - cpu


if __name__ == "__main__":
    port, count, qos = (int(word) for word in sys.argv[1:4])
    seconds, cpu_seconds = asyncio.run(publish(port, count, qos))
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds}))
