/** Below the ports that Linux gives to outgoing connections (32,768 … 60,999) and for port 0. */
const lowestPort = 20_000
const portCount = 12_000
const attemptsMax = 100

/**
 * A free port for a program that must be told one, or that stops and listens on the same one again.
 * No connection of a test beside it takes the port meanwhile.
 */
export function freePort(): number {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const port = lowestPort + Math.floor(Math.random() * portCount)
    if (isFree(port)) return port
  }
  throw new Error(`no free port found from ${lowestPort} to ${lowestPort + portCount - 1}`)
}

function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } }).stop(true)
    return true
  } catch {
    return false
  }
}
