/**
 * What a client has sent and what is still to be done, in its order: audio, and the marks in
 * between. Small messages are put together in blocks, so that many of them cost no more memory than
 * few; packets keep their bounds.
 */
export type Inbox = {
  push(bytes: Uint8Array): void
  finalize(id: string): void
  end(): void
  /** The next piece of audio or mark; null when there is nothing. */
  take(): InboxItem | null
  clear(): void
  /** What is kept: audio, and four bytes more for each packet. */
  storedBytes(): number
  /** Audio that has ever been taken. */
  takenBytes(): number
}

type InboxItem =
  | { readonly type: 'audio'; readonly bytes: Uint8Array }
  | { readonly type: 'finalize'; readonly id: string }
  | { readonly type: 'end' }

/** One decoding step gets no more, unless it is one packet. */
const pieceBytesMax = 4_096
const blockBytesMin = 4_096
/** The length of a packet stands before it. */
const prefixBytes = 4

type Block = { readonly type: 'block'; readonly bytes: Buffer; written: number; read: number }
type Entry = Block | Exclude<InboxItem, { type: 'audio' }>

/** `stored` hears of every change of `storedBytes`. */
export function createInbox(options: {
  keepsPackets: boolean
  stored: (changeBytes: number) => void
}): Inbox {
  const { keepsPackets } = options
  const entries: Entry[] = []
  let storedBytes = 0
  let takenBytes = 0

  function change(bytes: number): void {
    storedBytes += bytes
    options.stored(bytes)
  }

  function blockFor(bytes: number): Block {
    const last = entries.at(-1)
    if (last?.type === 'block' && last.bytes.length - last.written >= bytes) return last
    const block: Block = {
      type: 'block',
      bytes: Buffer.allocUnsafeSlow(Math.max(blockBytesMin, bytes)),
      written: 0,
      read: 0,
    }
    entries.push(block)
    return block
  }

  function takePiece(block: Block): Uint8Array {
    const length = keepsPackets
      ? block.bytes.readUInt32LE(block.read)
      : Math.min(pieceBytesMax, block.written - block.read)
    const start = block.read + (keepsPackets ? prefixBytes : 0)
    const end = start + length
    change(block.read - end)
    block.read = end
    takenBytes += length
    return block.bytes.subarray(start, end)
  }

  /** The last block stays, even when all of it was taken, and is filled on. */
  function dropTaken(): void {
    for (let first = entries[0]; entries.length > 1; first = entries[0]) {
      if (first?.type !== 'block' || first.read < first.written) return
      entries.shift()
    }
  }

  return {
    push(bytes) {
      const needed = bytes.length + (keepsPackets ? prefixBytes : 0)
      const block = blockFor(needed)
      if (keepsPackets) block.bytes.writeUInt32LE(bytes.length, block.written)
      block.bytes.set(bytes, block.written + needed - bytes.length)
      block.written += needed
      change(needed)
    },
    finalize(id) {
      entries.push({ type: 'finalize', id })
    },
    end() {
      entries.push({ type: 'end' })
    },
    take() {
      dropTaken()
      const first = entries[0]
      if (first === undefined) return null
      if (first.type === 'block') {
        return first.read < first.written ? { type: 'audio', bytes: takePiece(first) } : null
      }
      entries.shift()
      return first
    },
    clear() {
      entries.length = 0
      change(-storedBytes)
    },
    storedBytes: () => storedBytes,
    takenBytes: () => takenBytes,
  }
}
