import type { Socket } from 'bun'
import { isRecord, parseJson } from '#lib/json.ts'
import { gatewayPath, responseText } from './load-request.ts'
import { modelName } from './plan.ts'
import { ResponseReader } from './response-reader.ts'
import {
  type Behaviour,
  type Stage,
  type StormJob,
  stormText,
  stormToken,
  writeStormRequest,
} from './storm-job.ts'
import { type EventReader, eventReaders } from './stream-events.ts'

const maxTokens = 1_000

/** One request of one client on its own connection. */
export class StormClient {
  readonly #behaviour: Behaviour
  readonly #job: StormJob
  readonly #reader: ResponseReader
  readonly #over = Promise.withResolvers<void>()
  #socket: Socket<undefined> | undefined
  #status = 0
  #unread = ''
  #text = ''
  #tokens = 0
  #hasEnded = false
  #hasLeft = false
  #onEvent: EventReader
  /** Checked events of the stream. */
  events = 0
  /** Description of the fault. */
  fault: string | null = null

  constructor(behaviour: Behaviour, job: StormJob) {
    this.#behaviour = behaviour
    this.#job = job
    this.#reader = new ResponseReader({
      onHead: (status) => {
        this.#status = status
      },
      onBody: (text) => this.#onBody(text),
      onEnd: () => this.#onEnd(),
    })
    this.#onEvent = eventReaders[behaviour.surface]({
      text: (text) => this.#onText(text),
      wholeText: (text) => {
        if (text !== this.#text) this.#fail('a closing event has another text')
      },
      heartbeat: () => undefined,
      terminal: (reason) => {
        if (reason !== 'stop') this.#fail(`it ended as ${reason}`)
      },
      outOfSequence: (sentence) => this.#fail(sentence),
      broken: (sentence) => this.#fail(sentence),
    })
  }

  /** Resolves when the response is complete or wrong. */
  get over(): Promise<void> {
    return this.#over.promise
  }

  get isWhole(): boolean {
    return this.#hasEnded && this.fault === null
  }

  get stage(): Stage {
    if (this.#behaviour.isHalf) return 'sending the request'
    return this.#status === 0 ? 'waiting for the response' : 'reading the response'
  }

  async open(): Promise<void> {
    this.#socket = await Bun.connect({
      hostname: '127.0.0.1',
      port: this.#job.port,
      socket: {
        open: (socket) => {
          socket.setNoDelay(true)
          socket.write(this.#request())
        },
        data: (_socket, bytes) => {
          if (!this.#hasLeft) this.#reader.push(bytes)
        },
        close: () => this.#onClose(),
        error: (_socket, error) => this.#fail(String(error)),
      },
    })
  }

  leave(): void {
    this.#hasLeft = true
    if (this.#behaviour.isAbrupt) this.#socket?.terminate()
    else this.#socket?.end()
  }

  #request(): Buffer {
    const { spec, surface, isStreamed, isHalf } = this.#behaviour
    const { port, bearer } = this.#job
    const content = writeStormRequest(spec)
    const asked =
      surface === 'responses'
        ? { input: content, store: false }
        : { messages: [{ role: 'user', content }], max_tokens: maxTokens }
    const body = JSON.stringify({ model: modelName, ...asked, stream: isStreamed })
    const head =
      `POST ${gatewayPath(surface)} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n` +
      `Authorization: Bearer ${bearer}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${body.length}\r\n\r\n`
    return Buffer.from(head + (isHalf ? body.slice(0, body.length / 2) : body))
  }

  #onBody(text: string): void {
    this.#unread += text
    if (!this.#behaviour.isStreamed || this.#status !== 200) return
    const frames = this.#unread.split('\n\n')
    this.#unread = frames.pop() ?? ''
    for (const frame of frames) this.#onFrame(frame)
  }

  #onFrame(frame: string): void {
    const [, type = '', data = ''] = /^(?:event: (.*)\n)?data: (.*)$/.exec(frame) ?? []
    if (data === '[DONE]') return
    const event = parseJson(data)
    this.events++
    if (isRecord(event)) this.#onEvent(type, event)
    else this.#fail(`no event: ${frame}`)
  }

  /** Tokens contain their request id, so mixed-up responses are detected. */
  #onText(text: string): void {
    const { id } = this.#behaviour.spec
    const words = text.split(' ').slice(0, -1)
    for (const word of words) {
      const expected = stormToken(id, this.#tokens++)
      if (`${word} ` !== expected) this.#fail(`"${word}" in place of "${expected}"`)
    }
    this.#text += text
  }

  #onEnd(): void {
    const { isStreamed, surface, spec } = this.#behaviour
    if (this.#status !== 200) this.#fail(`status ${this.#status}: ${this.#unread}`)
    else {
      const text = isStreamed ? this.#text : responseText(surface, parseJson(this.#unread))
      if (text !== stormText(spec)) this.#fail(`another text than was sent: ${String(text)}`)
    }
    this.#hasEnded = true
    this.#over.resolve()
  }

  #onClose(): void {
    if (!this.#hasLeft && !this.#hasEnded) this.#fail('the server closed the connection')
  }

  #fail(sentence: string): void {
    if (this.#hasLeft) return
    this.fault ??= `request ${this.#behaviour.spec.id}: ${sentence}`
    this.#over.resolve()
  }
}
