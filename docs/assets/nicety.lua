-- Wireshark's and tshark's view of nicety's captures: tshark -X lua_script:nicety.lua -r run.pcapng
-- docs/guide/capture.md describes the header.
local nicety = Proto("nicety", "nicety packet")

local fields = {
    version = ProtoField.uint8("nicety.version", "Version"),
    flags = ProtoField.uint8("nicety.flags", "Flags", base.HEX),
    control = ProtoField.bool("nicety.control", "Control channel", 8, nil, 0x01),
    lost = ProtoField.bool("nicety.lost", "Lost", 8, nil, 0x02),
    damaged = ProtoField.bool("nicety.damaged", "Damaged", 8, nil, 0x04),
    again = ProtoField.bool("nicety.again", "Again", 8, nil, 0x08),
    missing = ProtoField.bool("nicety.missing", "Bytes missing", 8, nil, 0x10),
    dropped = ProtoField.bool("nicety.dropped", "Dropped", 8, nil, 0x20),
    pause = ProtoField.bool("nicety.pause", "Pause frame", 8, nil, 0x40),
    length = ProtoField.uint16("nicety.header_length", "Bytes of the card's header"),
    channel = ProtoField.uint8("nicety.channel", "Virtual channel"),
    source = ProtoField.uint32("nicety.source", "Source rank"),
    destination = ProtoField.uint32("nicety.destination", "Destination rank"),
    message = ProtoField.uint64("nicety.message", "Message of the source"),
    offset = ProtoField.uint64("nicety.offset", "Offset in the message"),
    payload_length = ProtoField.uint64("nicety.payload_length", "Bytes of payload"),
    header = ProtoField.bytes("nicety.header", "Card's header"),
    payload = ProtoField.bytes("nicety.payload", "Payload"),
}
nicety.fields = fields

local HEADER = 40

function nicety.dissector(bytes, packet, tree)
    if bytes:len() < HEADER or bytes(0, 1):uint() ~= 1 then
        return 0
    end
    local source, destination = bytes(8, 4):uint(), bytes(12, 4):uint()
    packet.cols.protocol = "nicety"
    packet.cols.src = "rank " .. source
    packet.cols.dst = "rank " .. destination
    packet.cols.info = string.format(
        "message %s of rank %u to rank %u, %s B at %s",
        tostring(bytes(16, 8):uint64()), source, destination,
        tostring(bytes(32, 8):uint64()), tostring(bytes(24, 8):uint64()))

    local own = tree:add(nicety, bytes(0, HEADER))
    own:add(fields.version, bytes(0, 1))
    local flags = own:add(fields.flags, bytes(1, 1))
    for _, name in ipairs({ "control", "lost", "damaged", "again", "missing", "dropped", "pause" }) do
        flags:add(fields[name], bytes(1, 1))
    end
    own:add(fields.length, bytes(2, 2))
    own:add(fields.channel, bytes(4, 1))
    own:add(fields.source, bytes(8, 4))
    own:add(fields.destination, bytes(12, 4))
    own:add(fields.message, bytes(16, 8))
    own:add(fields.offset, bytes(24, 8))
    own:add(fields.payload_length, bytes(32, 8))

    if bytes(1, 1):bitfield(1, 1) == 1 then
        return Dissector.get("eth_withoutfcs"):call(bytes(HEADER):tvb(), packet, tree)
    end
    local header = math.min(bytes(2, 2):uint(), bytes:len() - HEADER)
    if header > 0 then
        tree:add(fields.header, bytes(HEADER, header))
    end
    if bytes:len() > HEADER + header then
        tree:add(fields.payload, bytes(HEADER + header))
    end
    return bytes:len()
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, nicety)
