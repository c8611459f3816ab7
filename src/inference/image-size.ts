/** In pixels. */
export type ImageSize = { readonly width: number; readonly height: number }

/** Decoded characters: headers come first, except in a JPEG with an embedded preview. */
const headChars = 1_024
const jpegHeadChars = 349_528

/** The size of a PNG, JPEG, GIF or WebP image in a data URL, from its header; null if unknown. */
export function imageSizeOf(url: string): ImageSize | null {
  const head = /^data:[^,]{0,200};base64,/i.exec(url.slice(0, 256))?.[0]
  if (head === undefined) return null
  const decode = (chars: number) =>
    Buffer.from(url.slice(head.length, head.length + chars), 'base64')
  const bytes = decode(headChars)
  const size = isJpeg(bytes) ? readJpeg(decode(jpegHeadChars)) : readOther(bytes)
  return size !== null && size.width > 0 && size.height > 0 ? size : null
}

function readOther(bytes: Buffer): ImageSize | null {
  if (bytes.length < 30) return null
  if (bytes.readUInt32BE(0) === 0x89504e47) {
    return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
  }
  const signature = bytes.toString('latin1', 0, 4)
  if (signature === 'GIF8') return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }
  return signature === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP' ? readWebp(bytes) : null
}

/** The first chunk of a WebP file is lossy, lossless, or an extended header. */
function readWebp(bytes: Buffer): ImageSize | null {
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff }
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21)
      return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 }
    }
    case 'VP8X':
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 }
    default:
      return null
  }
}

function isJpeg(bytes: Buffer): boolean {
  return bytes.length > 3 && bytes[0] === 0xff && bytes[1] === 0xd8
}

/** Skips segments up to the first frame header, which has the size. */
function readJpeg(bytes: Buffer): ImageSize | null {
  for (let at = 2; at + 9 <= bytes.length; ) {
    if (bytes[at] !== 0xff) return null
    const marker = bytes[at + 1] ?? 0
    if (marker === 0xff) {
      at += 1
    } else if (isFrame(marker)) {
      return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) }
    } else {
      at += 2 + bytes.readUInt16BE(at + 2)
    }
  }
  return null
}

/** 0xc4, 0xc8 and 0xcc are tables and an extension in the range of frames. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
}
