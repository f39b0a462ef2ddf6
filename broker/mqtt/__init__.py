"""The MQTT gateway: a client of a broker on one side, a client of an MQTT broker on the other.

Messages of devices become publications, and MQTT clients subscribe by content. It routes and matches nothing itself.
"""
