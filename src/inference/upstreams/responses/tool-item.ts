import { invalidResponse } from '#inference/decode-errors.ts'
import type { HostedEventName, HostedToolItem } from '#inference/events.ts'
import { forbiddenCall } from '#inference/tools.ts'
import { readJsonText, readText } from '#inference/upstream-fields.ts'
import type { JsonObject } from '#lib/json.ts'
import { type Output, OutputItem, SentText } from './output.ts'
import { inputFields, type ToolCallType } from './wire.ts'

/** A function or custom tool call. Its block begins when its name is known; input is buffered until then. */
export class ToolCall extends OutputItem {
  readonly #itemType: ToolCallType
  #name: string | null = null
  #namespace: string | null = null
  #wireCallId: string | null = null
  /** Input that arrived before the name. */
  #pendingInput = ''
  readonly #sent = new SentText()

  constructor(output: Output, type: ToolCallType) {
    super(output, type, 'tool-call')
    this.#itemType = type
  }

  isRepeatedBy(source: JsonObject) {
    return this.callId === readText(source['call_id'])
  }

  announce(source: JsonObject) {
    if (this.begun) return
    this.#name = readText(source['name']) ?? this.#name
    this.#namespace ??= readText(source['namespace'])
    this.#wireCallId ??= readText(source['call_id'])
    if (this.#name !== null) this.#openBlock(this.#name)
  }

  addInput(text: string) {
    // A call whose item yielded was complete; nothing can be added to it.
    if (text === '' || (this.begun && !this.isOpen)) return
    this.countArguments(text)
    this.#sent.record(text)
    if (this.begun) this.append({ type: 'tool-call-delta', block: this.block, text })
    else this.#pendingInput += text
  }

  /** Emits what was not streamed of the complete input; older servers send the name only here. */
  completeInput(event: JsonObject, whole: string) {
    this.#name ??= readText(event['name'])
    this.addInput(this.#sent.missingIn(whole))
  }

  finish(final: JsonObject) {
    this.announce(final)
    if (this.#name === null) throw invalidResponse('called a tool without a name')
    this.addInput(this.#sent.missingIn(readJsonText(final[inputFields[this.#itemType]])))
  }

  /** A call without arguments gets the empty object: an empty text is not JSON. */
  close(complete: boolean) {
    if (!this.isOpen) return
    const { block } = this
    if (complete && this.#itemType === 'function_call' && this.#sent.chars === 0) {
      this.append({ type: 'tool-call-delta', block, text: '{}' })
    }
    this.append({ type: 'tool-call-end', block, complete })
    this.isOpen = false
  }

  #openBlock(name: string) {
    const { options } = this.output
    const tool = this.#namespace === null ? { name } : { name, namespace: this.#namespace }
    if (!options.mayCall(tool)) throw forbiddenCall()
    const form = this.#itemType === 'function_call' ? 'function' : 'custom'
    this.beginBlock({
      type: 'tool-call-start',
      block: this.block,
      call: { callId: this.#claimCallId(), ...tool, form },
    })
    const text = this.#pendingInput
    if (text !== '') this.append({ type: 'tool-call-delta', block: this.block, text })
    this.#pendingInput = ''
  }

  /** Returns a call id that is unique in this generation: a new one where it is missing or taken. */
  #claimCallId(): string {
    const { takenCallIds, options } = this.output
    const received = this.#wireCallId
    const isFree = received !== null && !takenCallIds.has(received)
    const callId = isFree ? received : options.mintCallId()
    takenCallIds.add(callId)
    return callId
  }
}

/** An item of a tool that ran at the upstream. Its fields are forwarded unchanged, without the id. */
export class HostedTool extends OutputItem {
  /** The latest state of the item. */
  #item: HostedToolItem
  #stage = ''
  readonly #input = new SentText()

  constructor(output: Output, type: string) {
    super(output, type, 'hosted-tool')
    this.#item = { type }
  }

  isRepeatedBy() {
    return true
  }

  announce(source: JsonObject) {
    const { id: _, ...fields } = source
    this.#item = { ...fields, type: this.type }
    if (this.begun) return
    this.beginBlock({ type: 'hosted-tool-start', block: this.block, item: this.#item })
  }

  reportStage(stage: string) {
    if (!this.isOpen || stage === this.#stage) return
    this.#stage = stage
    this.append({ type: 'hosted-tool-progress', block: this.block, stage })
  }

  addInput(text: string) {
    if (text === '' || !this.isOpen) return
    this.countArguments(text)
    this.#input.record(text)
    this.append({ type: 'hosted-tool-delta', block: this.block, text })
  }

  completeInput(whole: string) {
    this.addInput(this.#input.missingIn(whole))
  }

  /** Forwards an event without its ids. */
  forward(name: HostedEventName, event: JsonObject) {
    if (!this.isOpen) return
    const { type, sequence_number, item_id, output_index, obfuscation, stream_id, ...fields } =
      event
    this.append({ type: 'hosted-tool-event', block: this.block, name, fields })
  }

  finish(final: JsonObject) {
    this.announce(final)
  }

  close() {
    if (this.isOpen) this.append({ type: 'hosted-tool-end', block: this.block, item: this.#item })
    this.isOpen = false
  }
}
