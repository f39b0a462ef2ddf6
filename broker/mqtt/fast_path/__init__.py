"""Reads and writes MQTT packets in blocks.

This package replaces private members of aiomqtt and paho-mqtt (`private_members` lists them). No other module of the
gateway uses private members. `fast_path = false` in [mqtt] does without this package's client.
"""
