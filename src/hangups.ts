import { closeSync, openSync } from 'node:fs'
import { isatty } from 'node:tty'

export type Hangups = {
  /** Called for each SIGHUP from now on, and at once for one that has arrived before. */
  handle(handlers: { onReload: () => void; onTerminalClosed: () => void }): void
}

/**
 * SIGHUP asks for a reload of the configuration. Without a handler it ends the process, so this is
 * called before the program loads. The kernel sends the same signal when a terminal is closed.
 */
export function catchHangups(): Hangups {
  const hasTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor))
  let waiting = false
  let handle = () => {
    waiting = true
  }
  process.on('SIGHUP', () => handle())
  return {
    handle({ onReload, onTerminalClosed }) {
      handle = () => (hasTerminal && !isTerminalOpen() ? onTerminalClosed() : onReload())
      if (waiting) handle()
    },
  }
}

function isTerminalOpen(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}
