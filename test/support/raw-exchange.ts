import { connect, type Socket } from 'node:net'

/** Sends bytes to a local port, and returns the response when the connection ends. */
export function exchangeBytes(port: number, bytes: string | Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = []
    const socket = connect(port, '127.0.0.1')
    socket.on('data', (piece: Buffer) => pieces.push(piece))
    // A server may reset the connection after invalid input; what it sent before counts.
    socket.on('error', () => {})
    socket.on('close', () => resolve(Buffer.concat(pieces).toString()))
    socket.write(bytes)
  })
}

/** An open connection on which these bytes were sent. */
export function openSocket(port: number, bytes: string | Uint8Array): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      socket.on('error', () => {})
      socket.write(bytes, () => resolve(socket))
    })
  })
}

export type ParsedAnswer = {
  status: number
  headers: Readonly<Record<string, string>>
  body: string
}

export function parseAnswer(answer: string): ParsedAnswer {
  const headEnd = answer.indexOf('\r\n\r\n')
  const [start = '', ...lines] = answer.slice(0, headEnd).split('\r\n')
  const headers = lines.map((line) => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
  })
  return {
    status: Number(start.split(' ')[1]),
    headers: Object.fromEntries(headers),
    body: answer.slice(headEnd + 4),
  }
}
