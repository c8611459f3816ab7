import type { Wire } from './outbox.ts'

/** Closes one socket, once. */
export type Closer = {
  close(closeCode: number, reason: string): void
  isClosing(): boolean
  look(): void
}

/**
 * A client that has sent what was not read would get a reset instead of the last frames, so it is
 * read a little longer.
 */
const lingerMs = 200

export function createCloser(wire: Wire): Closer {
  let isClosing = false
  let later: { readonly at: number; readonly close: () => void } | null = null
  return {
    close(closeCode, reason) {
      if (isClosing) return
      isClosing = true
      const close = () => wire.close(closeCode, reason)
      if (wire.isPaused) {
        later = { at: performance.now() + lingerMs, close }
        wire.resume()
      } else close()
    },
    isClosing: () => isClosing,
    look() {
      if (later !== null && performance.now() >= later.at) later.close()
    },
  }
}
