import type { ServerWebSocket } from 'bun'
import type { Exchange } from '#lib/exchange.ts'
import { renderFrame, type UnsentFrame } from './server-frames.ts'

/** The parts of Bun's socket that sessions use. */
export type ClientSocket = Pick<
  ServerWebSocket<unknown>,
  | 'sendText'
  | 'close'
  | 'terminate'
  | 'pause'
  | 'resume'
  | 'isPaused'
  | 'ping'
  | 'getBufferedAmount'
>

/** The socket, whose sent bytes are counted: of text, which is what the server sends. */
export function countSent(
  socket: ClientSocket,
  exchange: Pick<Exchange, 'addBytesOut'>,
): ClientSocket {
  return {
    sendText(text) {
      exchange.addBytesOut(Buffer.byteLength(text))
      return socket.sendText(text)
    },
    close: (code, reason) => socket.close(code, reason),
    terminate: () => socket.terminate(),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    get isPaused() {
      return socket.isPaused
    },
    ping: (data) => socket.ping(data),
    getBufferedAmount: () => socket.getBufferedAmount(),
  }
}

/** Renders a frame in another protocol: as any number of messages. */
export type TranslateFrame = (frame: UnsentFrame) => readonly string[]

type WaitingFrame = { readonly frame: UnsentFrame; readonly chars: number }

/** The limit of Bun's own send buffer; further frames wait here, where they can be coalesced. */
const bufferedBytesMax = 65_536

/**
 * The frames of one session, across all of its sockets. Frames are numbered when they are sent.
 * While the client does not read, frames wait here; of partials and acknowledgements only the newest
 * is kept, everything else stays in order. Without a socket, frames only go to the log, which keeps
 * the newest `logCharsMax` characters for a client that resumes.
 */
export class Outbox {
  /** For the statistics of the session. */
  readonly partials = { partials_sent: 0, partials_dropped: 0 }
  readonly #logCharsMax: number
  readonly #translate: TranslateFrame | null
  readonly #log: { readonly seq: number; readonly text: string }[] = []
  /** Characters of the frames kept for a client that resumes. */
  logChars = 0
  /** The number of the last frame dropped from the log; 0: none. */
  droppedSeq = 0
  #waiting: WaitingFrame[] = []
  #waitingChars = 0
  #socket: ClientSocket | null = null
  #seq = 0
  #onFlushed: (() => void) | null = null

  /** `translate`: of a client with another protocol, which cannot resume. */
  constructor(logCharsMax: number, translate: TranslateFrame | null = null) {
    this.#logCharsMax = logCharsMax
    this.#translate = translate
  }

  push(frame: UnsentFrame): void {
    if (this.#socket === null) this.#logOnly(frame)
    else if (this.#waitingChars === 0 && this.#canSend()) this.#send(frame)
    else this.#wait(frame)
  }

  /** Attaches a new socket and resends the logged frames after `lastSeq`. */
  attach(socket: ClientSocket, lastSeq: number): void {
    this.#socket = socket
    // Limited by the size of the log; Bun buffers what the client does not read yet.
    for (const { seq, text } of this.#log) if (seq > lastSeq) socket.sendText(text)
  }

  /** The socket has closed: waiting frames go to the log. */
  detach(): void {
    this.#socket = null
    for (const { frame } of this.#waiting.splice(0)) this.#logOnly(frame)
    this.#waitingChars = 0
    this.flush()
  }

  /** Sends waiting frames until the socket is full. */
  flush(): void {
    while (this.#canSend()) {
      const next = this.#waiting.shift()
      if (next === undefined) break
      this.#waitingChars -= next.chars
      this.#send(next.frame)
    }
    if (this.#onFlushed === null || this.pendingBytes() > 0) return
    const onFlushed = this.#onFlushed
    this.#onFlushed = null
    onFlushed()
  }

  /** Calls back once the kernel has accepted everything; immediately without a socket. */
  finish(onFlushed: () => void): void {
    this.#onFlushed = onFlushed
    this.flush()
  }

  /** Reserves a number for a frame that is sent directly. */
  takeSeq(): number {
    return ++this.#seq
  }

  pendingBytes(): number {
    return this.#waitingChars + (this.#socket?.getBufferedAmount() ?? 0)
  }

  #canSend(): boolean {
    return this.#socket !== null && this.#socket.getBufferedAmount() <= bufferedBytesMax
  }

  #send(frame: UnsentFrame): void {
    if (isPartial(frame)) this.partials.partials_sent++
    if (this.#translate === null) this.#socket?.sendText(this.#number(frame))
    else for (const text of this.#translate(frame)) this.#socket?.sendText(text)
  }

  #number(frame: UnsentFrame): string {
    const text = renderFrame(frame, ++this.#seq)
    // A client that resumes receives a new `session_ready`.
    if (!isReplaceable(frame) && frame.type !== 'session_ready') this.#addToLog(this.#seq, text)
    return text
  }

  #addToLog(seq: number, text: string): void {
    this.#log.push({ seq, text })
    this.logChars += text.length
    while (this.logChars > this.#logCharsMax) {
      const oldest = this.#log.shift()
      if (oldest === undefined) return
      this.logChars -= oldest.text.length
      this.droppedSeq = oldest.seq
    }
  }

  #logOnly(frame: UnsentFrame): void {
    if (isPartial(frame)) this.partials.partials_dropped++
    else if (!isReplaceable(frame) && this.#translate === null) this.#number(frame)
  }

  /** Queues a frame, which replaces waiting partials of its segment, or acknowledgements. */
  #wait(frame: UnsentFrame): void {
    if (frame.type === 'audio_ack') this.#drop((older) => older.type === 'audio_ack')
    if (frame.type === 'transcript') {
      const { segment } = frame
      this.#drop((older) => isPartial(older) && older.segment === segment)
    }
    const chars = JSON.stringify(frame).length
    this.#waiting.push({ frame, chars })
    this.#waitingChars += chars
  }

  #drop(isReplaced: (frame: UnsentFrame) => boolean): void {
    this.#waiting = this.#waiting.filter(({ frame, chars }) => {
      if (!isReplaced(frame)) return true
      this.#waitingChars -= chars
      if (isPartial(frame)) this.partials.partials_dropped++
      return false
    })
  }
}

/** Whether a newer frame of the same kind makes this one obsolete. */
function isReplaceable(frame: UnsentFrame): boolean {
  return frame.type === 'audio_ack' || isPartial(frame)
}

function isPartial(
  frame: UnsentFrame,
): frame is Extract<UnsentFrame, { type: 'transcript'; is_final: false }> {
  return frame.type === 'transcript' && !frame.is_final
}
