import { isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { EngineError, type EngineErrorKind } from '#speech/engine.ts'

export type ServerConnectionListener = {
  opened(): void
  received(frame: JsonObject): void
  /** The last call: the connection failed, was closed, or received an invalid frame. */
  failed(error: EngineError): void
}

export type ServerAddress = {
  /** As configured: ws or http, with or without a path. */
  readonly url: string
  /** The path for a URL without one. */
  readonly defaultPath: string
  readonly query: readonly (readonly [name: string, value: string])[]
  readonly headers: Readonly<Record<string, string>>
  /** Redacted from the server's messages. */
  readonly secret: string | undefined
}

/** Longer than the final of any utterance with all of its words. */
const frameCharsMax = 1_048_576
/** Half a minute of speech at 16 kHz, in addition to the kernel's buffers. */
const bufferBytesMax = 1_048_576
const reasonCharsMax = 200
/** For the closing handshake, which some servers omit. */
const closeMs = 2_000

/** One WebSocket to a speech server: receives JSON text frames, sends text and binary frames. */
export class ServerConnection {
  readonly #socket: WebSocket
  readonly #listener: ServerConnectionListener
  readonly #secret: string | undefined
  #isOver = false
  #isOpen = false
  #upgradeStatus: number | null = null

  constructor(address: ServerAddress, listener: ServerConnectionListener) {
    this.#listener = listener
    this.#secret = address.secret
    const { headers } = address
    this.#socket = new WebSocket(urlOf(address), { headers, perMessageDeflate: false })
    this.#socket.onopen = () => {
      this.#isOpen = true
      if (!this.#isOver) listener.opened()
    }
    this.#socket.onmessage = ({ data }: MessageEvent<unknown>) => this.#onMessage(data)
    this.#socket.onerror = (event) => {
      // The message quotes the URL, so only the status is read from it.
      const message = 'message' in event ? String(event.message) : ''
      const status = /status code: (\d{3})\b/.exec(message)?.[1]
      this.#upgradeStatus = status === undefined ? null : Number(status)
    }
    this.#socket.onclose = ({ code, reason }) => this.#onClose(code, reason)
  }

  /** Sends a text or binary frame; the bytes may be reused after the call. */
  send(data: string | Uint8Array): void {
    if (this.#isOver) return
    this.#socket.send(data)
    if (this.bufferedBytes() > bufferBytesMax) this.#fail('broken', 'the server does not read')
  }

  /** Bytes sent that have not left this process. */
  bufferedBytes(): number {
    return this.#socket.bufferedAmount
  }

  /** Closes in order, or forcibly if the server does not respond. The listener is not called. */
  close(): void {
    this.#isOver = true
    const timer = setTimeout(() => this.#socket.terminate(), closeMs)
    this.#socket.onclose = () => clearTimeout(timer)
    this.#socket.close(1000)
  }

  /** Closes immediately, in any state. The listener is not called. */
  terminate(): void {
    this.#isOver = true
    this.#socket.terminate()
  }

  #onMessage(data: unknown) {
    if (this.#isOver) return
    if (typeof data !== 'string') return this.#fail('broken', 'the server sent a binary frame')
    if (data.length > frameCharsMax) return this.#fail('broken', 'the server sent too long a frame')
    const frame = parseJson(data)
    if (isRecord(frame)) return this.#listener.received(frame)
    const quoted = data.slice(0, reasonCharsMax)
    this.#fail('broken', `the server sent a frame that is not a JSON object: ${quoted}`)
  }

  #onClose(code: number, reason: string): void {
    const status = this.#upgradeStatus
    if (status !== null) {
      this.#fail(kindOfStatus(status), `the server responded with status ${status}`)
    } else if (this.#isOpen) {
      const detail = reason === '' ? '' : `: ${reason}`
      this.#fail(kindOfClose(code), `the server closed with ${code}${detail}`)
    } else {
      this.#fail('unreachable', 'the connection to the server failed')
    }
  }

  #fail(kind: EngineErrorKind, message: string): void {
    if (this.#isOver) return
    this.terminate()
    this.#listener.failed(new EngineError(kind, redact(message, this.#secret)))
  }
}

function urlOf({ url, defaultPath, query }: ServerAddress): string {
  const parsed = new URL(url.replace(/^http/i, 'ws'))
  if (parsed.pathname === '/') parsed.pathname = defaultPath
  // Configured parameters take precedence; our own names may occur several times.
  const configured = new Set(parsed.searchParams.keys())
  for (const [name, value] of query) {
    if (!configured.has(name)) parsed.searchParams.append(name, value)
  }
  return parsed.href
}

/** Removes the credential, which servers like to quote, from a message for the log. */
function redact(text: string, secret: string | undefined): string {
  const safe = secret === undefined ? text : text.replaceAll(secret, '[redacted]')
  return safe.slice(0, reasonCharsMax * 2)
}

function kindOfStatus(status: number): EngineErrorKind {
  if (status === 429 || status === 503) return 'busy'
  if (status >= 400 && status < 500 && status !== 408) return 'refused'
  return 'unreachable'
}

/** Standard and registered close codes, and 4000 + an HTTP status, which some servers use. */
function kindOfClose(code: number): EngineErrorKind {
  if (code === 1013) return 'busy'
  if ([1003, 1007, 1008, 1009, 3000, 3003].includes(code)) return 'refused'
  if (code >= 4400 && code < 4500) return kindOfStatus(code - 4000)
  return 'broken'
}
