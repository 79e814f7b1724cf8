"""The engines that can be measured: adapters by name, each in a module that imports its peer late.

A process that measures one engine must not carry the others, so the peer is imported when its
engine is made.
"""
