"""MQTT packets read and written in blocks.

This package replaces private parts of aiomqtt and paho-mqtt. Nothing else in the gateway touches these.
"""
