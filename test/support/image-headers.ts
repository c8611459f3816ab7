/** The headers of image files, up to the size. */

export function toDataUrl(bytes: Uint8Array, type = 'image/png'): string {
  return `data:${type};base64,${Buffer.from(bytes).toString('base64')}`
}

export function png(width: number, height: number): Buffer {
  const head = Buffer.alloc(33)
  head.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13])
  head.write('IHDR', 12, 'latin1')
  head.writeUInt32BE(width, 16)
  head.writeUInt32BE(height, 20)
  return head
}

export function gif(width: number, height: number): Buffer {
  const head = Buffer.alloc(40)
  head.write('GIF89a', 0, 'latin1')
  head.writeUInt16LE(width, 6)
  head.writeUInt16LE(height, 8)
  return head
}

type JpegOptions = { frame?: number; previewBytes?: number; padding?: number }

export function jpeg(width: number, height: number, options: JpegOptions = {}): Buffer {
  const { frame = 0xc0, previewBytes = 14, padding = 0 } = options
  const preview = Buffer.alloc(previewBytes + 2)
  preview.writeUInt16BE(previewBytes + 2, 0)
  const tables = Buffer.alloc(67)
  tables.writeUInt16BE(67, 0)
  const size = Buffer.alloc(17)
  size.writeUInt16BE(17, 0)
  size[2] = 8
  size.writeUInt16BE(height, 3)
  size.writeUInt16BE(width, 5)
  const fill = Buffer.alloc(padding, 0xff)
  return Buffer.concat([
    ...[Buffer.from([0xff, 0xd8, 0xff, 0xe1]), preview],
    ...[fill, Buffer.from([0xff, 0xc4]), tables],
    ...[fill, Buffer.from([0xff, frame]), size],
  ])
}

export function webp(chunk: 'VP8 ' | 'VP8L' | 'VP8X', width: number, height: number): Buffer {
  const head = Buffer.alloc(40)
  head.write('RIFF', 0, 'latin1')
  head.write(`WEBP${chunk}`, 8, 'latin1')
  if (chunk === 'VP8 ') {
    head.writeUInt16LE(width, 26)
    head.writeUInt16LE(height, 28)
  } else if (chunk === 'VP8L') {
    head[20] = 0x2f
    head.writeUInt32LE((width - 1) | ((height - 1) << 14), 21)
  } else {
    head.writeUIntLE(width - 1, 24, 3)
    head.writeUIntLE(height - 1, 27, 3)
  }
  return head
}
