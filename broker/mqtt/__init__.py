"""The MQTT gateway: a client of a broker and a client of an MQTT broker.

It publishes the messages of devices, and lets MQTT clients subscribe by content. The broker does all matching and
routing.
"""
