"""Neurons that turn the bits of a canonical prefix code into the class they name.

Bits are read from the top.  Y doubles and takes the next bit until the code is finished, which is when Y is below the
end of the codes of that length; then F = 1 gates every later step off.  Called by `budgeted_network`.
"""

from __future__ import annotations

from memcap.construct.budgeted_plan import finishing
from memcap.construct.named_block import NamedBlock, Unit
from memcap.construct.prefix_code import PrefixCode

NUMBER, FINISHED = "number", "finished"


def decode_blocks(code: PrefixCode, acc: str) -> list[NamedBlock]:
    """Blocks that leave ``class - offset(longest)`` in `NUMBER`; ``acc`` holds twice the bits, the first one on top.

    All gates are larger than anything they switch off: acc and Y stay below ``2^(longest + 1)``.
    """
    gate = 1 << (code.longest + 2)
    blocks = []
    ends = finishing(code)
    for bit in range(1, code.longest + 1):
        size = 1 << (code.longest + 1 - bit)
        shut = {FINISHED: -gate} if bit > code.shortest else {}
        units = [Unit("over", {acc: 1, **shut}, 1 - size), Unit("less", {acc: 1, **shut}, -size)]
        outputs = [(NUMBER, "over", 1), (NUMBER, "less", -1)]
        if bit < code.longest:
            outputs += [(acc, "over", -size), (acc, "less", size)]
        if bit > 1:
            units.append(Unit("double", {NUMBER: 1, **shut}))
            outputs.append((NUMBER, "double", 1))
        blocks.append(NamedBlock(f"decode/bit/{bit}", [units], outputs))
        if bit in ends:
            shut = {FINISHED: -gate} if bit > code.shortest else {}
            end = code.end(bit)
            ending = [Unit("below", {NUMBER: -1, **shut}, end), Unit("well below", {NUMBER: -1, **shut}, end - 1)]
            shift = code.offset(bit) - code.offset(code.longest)
            outputs = [(FINISHED, "below", 1), (FINISHED, "well below", -1)]
            if shift:
                outputs += [(NUMBER, "below", shift), (NUMBER, "well below", -shift)]
            blocks.append(NamedBlock(f"decode/end/{bit}", [ending], outputs))
    return blocks
