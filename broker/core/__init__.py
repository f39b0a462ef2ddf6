"""The broker without I/O: it turns an input and the time into effects.

`Broker.handle(input, now)` returns the effects of one input. The simulation and the runtime drive the same class. This
package imports routing and matching only; it has no clock, no socket and no thread.
"""
