/** G.711: one byte per sample at 8 kHz, expanded to 16-bit samples. */
export type Law = 'mulaw' | 'alaw'

const tables: Readonly<Record<Law, Int16Array>> = {
  mulaw: Int16Array.from({ length: 256 }, (_, byte) => expandMulaw(byte)),
  alaw: Int16Array.from({ length: 256 }, (_, byte) => expandAlaw(byte)),
}

/** Little-endian 16-bit PCM. */
export function expandG711(bytes: Uint8Array, law: Law): Uint8Array {
  const table = tables[law]
  const samples = Int16Array.from(bytes, (byte) => table[byte] ?? 0)
  return new Uint8Array(samples.buffer)
}

function expandMulaw(byte: number): number {
  const code = ~byte & 0xff
  const exponent = (code >> 4) & 0x07
  const magnitude = (((code & 0x0f) << 3) + 0x84) << exponent
  return code & 0x80 ? 0x84 - magnitude : magnitude - 0x84
}

function expandAlaw(byte: number): number {
  const code = byte ^ 0x55
  const exponent = (code >> 4) & 0x07
  const mantissa = (code & 0x0f) << 4
  const magnitude = exponent === 0 ? mantissa + 8 : (mantissa + 0x108) << (exponent - 1)
  return code & 0x80 ? magnitude : -magnitude
}
