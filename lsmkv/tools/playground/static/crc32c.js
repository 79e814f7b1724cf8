// CRC-32C, as Python's module crc32c has it: Pyodide's platform has no wheel of that, and a table in Python is slow.

const POLYNOMIAL = 0x82f63b78; // bits reversed
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ POLYNOMIAL : byte >>> 1;
  return byte;
});

/** The checksum of what a Python object with a buffer holds, which follows bytes whose checksum is `crc`. */
export function crc32c(data, crc = 0) {
  const view = data.getBuffer("u8");
  let running = ~crc;
  for (const byte of view.data) running = TABLE[(running ^ byte) & 255] ^ (running >>> 8);
  view.release();
  data.destroy();
  return ~running >>> 0;
}
