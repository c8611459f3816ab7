/** Where the checksum of a page is: four bytes, little-endian. */
export const oggChecksumAt = 22

/**
 * Of a page of an Ogg stream (RFC 3533, 6): CRC-32 with the polynomial 04c11db7, unreflected, over the page
 * with its checksum as zeros.
 */
export function oggChecksum(page: Uint8Array): number {
  let crc = 0
  for (let at = 0; at < page.length; at++) {
    const byte = at >= oggChecksumAt && at < oggChecksumAt + 4 ? 0 : (page[at] as number)
    crc = (crc << 8) ^ (crcTable[((crc >>> 24) ^ byte) & 0xff] as number)
  }
  return crc >>> 0
}

const crcTable = Int32Array.from({ length: 256 }, (_, index) => {
  let crc = index << 24
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x80000000 ? (crc << 1) ^ 0x04c11db7 : crc << 1
  return crc
})
