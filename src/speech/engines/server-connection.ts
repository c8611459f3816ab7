import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { EngineError, type EngineErrorKind } from '#speech/engine.ts'

/** One WebSocket to a speech server: text frames in, text and binary out, one failure at most. */
export type ServerConnection = {
  sendText(text: string): void
  /** The bytes may be reused when this returns. */
  sendBytes(bytes: Uint8Array): void
  /** What was sent and has not left this process. */
  bufferedBytes(): number
  /** Ends it in order, or by force where the server does not answer; the listener hears nothing. */
  close(): void
  /** Ends it at once, at any stage; the listener hears nothing. */
  terminate(): void
}

export type ServerConnectionListener = {
  opened(): void
  frame(frame: JsonObject): void
  /** The last call: it could not be opened, was closed, or brought what cannot be read. */
  failed(error: EngineError): void
}

export type ServerAddress = {
  /** As configured, with ws or http, with a path or without. */
  readonly url: string
  /** Where servers of this protocol listen, for a URL without a path. */
  readonly usualPath: string
  readonly query: readonly (readonly [name: string, value: string])[]
  readonly headers: Readonly<Record<string, string>>
  /** Taken out of everything that the server says of itself. */
  readonly secret: string | undefined
}

/** Longer than the final of any utterance with all of its words. */
const frameCharsMax = 1_048_576
/** Half a minute of speech at 16 kHz, beyond what the kernel holds. */
const bufferBytesMax = 1_048_576
const reasonCharsMax = 200
/** For the closing handshake, which some servers leave out. */
const closeMs = 2_000

export function connectToServer(
  address: ServerAddress,
  listener: ServerConnectionListener,
): ServerConnection {
  const socket = new WebSocket(urlOf(address), {
    headers: address.headers,
    perMessageDeflate: false,
  })
  let isOver = false
  let isOpen = false
  let upgradeStatus: number | null = null
  const fail = (kind: EngineErrorKind, message: string) => {
    if (isOver) return
    isOver = true
    socket.terminate()
    listener.failed(new EngineError(kind, tidy(message, address.secret)))
  }
  socket.onopen = () => {
    isOpen = true
    if (!isOver) listener.opened()
  }
  socket.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (isOver) return
    if (typeof data !== 'string') return fail('broken', 'the server sent a binary frame')
    if (data.length > frameCharsMax) return fail('broken', 'the server sent too long a frame')
    const frame = parseJson(data)
    if (isRecord(frame)) listener.frame(frame)
    else fail('broken', `the server sent what is no JSON object: ${data.slice(0, reasonCharsMax)}`)
  }
  socket.onerror = (event) => {
    // The message quotes the URL, so only the status is taken from it.
    const status = 'message' in event ? /status code: (\d{3})\b/.exec(String(event.message)) : null
    upgradeStatus = status === null ? null : Number(status[1])
  }
  socket.onclose = ({ code, reason }) => {
    if (upgradeStatus !== null) {
      fail(kindOfStatus(upgradeStatus), `the server answered with status ${upgradeStatus}`)
    } else if (isOpen) {
      fail(kindOfClose(code), `the server closed with ${code}${reason === '' ? '' : `: ${reason}`}`)
    } else {
      fail('unreachable', 'the server cannot be connected to')
    }
  }
  const checkBuffer = () => {
    if (socket.bufferedAmount > bufferBytesMax) fail('broken', 'the server does not read')
  }
  return {
    sendText(text) {
      if (isOver) return
      socket.send(text)
      checkBuffer()
    },
    sendBytes(bytes) {
      if (isOver) return
      socket.send(bytes)
      checkBuffer()
    },
    bufferedBytes: () => socket.bufferedAmount,
    close() {
      isOver = true
      const timer = setTimeout(() => socket.terminate(), closeMs)
      socket.onclose = () => clearTimeout(timer)
      socket.close(1000)
    },
    terminate() {
      isOver = true
      socket.terminate()
    },
  }
}

function urlOf({ url, usualPath, query }: ServerAddress): string {
  const parsed = new URL(url.replace(/^http/i, 'ws'))
  if (parsed.pathname === '/') parsed.pathname = usualPath
  // What the operator wrote wins; a repeated name of ours is meant to be there twice.
  const written = new Set(parsed.searchParams.keys())
  for (const [name, value] of query) {
    if (!written.has(name)) parsed.searchParams.append(name, value)
  }
  return parsed.href
}

/** A server's own words for the log: without the credential, which servers like to quote. */
function tidy(text: string, secret: string | undefined): string {
  const safe = secret === undefined ? text : text.replaceAll(secret, '[redacted]')
  return safe.slice(0, reasonCharsMax * 2)
}

function kindOfStatus(status: number): EngineErrorKind {
  if (status === 429 || status === 503) return 'busy'
  if (status >= 400 && status < 500 && status !== 408) return 'refused'
  return 'unreachable'
}

/** Codes of the protocol, its registered ones, and 4000 + an HTTP status, as servers write it. */
function kindOfClose(code: number): EngineErrorKind {
  if (code === 1013) return 'busy'
  if ([1003, 1007, 1008, 1009, 3000, 3003].includes(code)) return 'refused'
  if (code >= 4400 && code < 4500) return kindOfStatus(code - 4000)
  return 'broken'
}
