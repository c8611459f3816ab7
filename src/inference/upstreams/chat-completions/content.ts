import { invalidResponse } from '#inference/decode-errors.ts'
import type { GenerationEvent, HostedToolItem, TokenLogprob } from '#inference/events.ts'
import { ToolCalls } from '#inference/tool-calls.ts'
import type { ToolNames } from '#inference/tools.ts'
import { readJsonText, readRecords, readString } from '#inference/upstream-fields.ts'
import { asRecord, isRecord, type JsonObject, omitFields } from '#lib/json.ts'
import { Citations } from './citations.ts'
import { AudioReader, imageItem } from './media.ts'
import type { TextField } from './read.ts'
import { createThinkTagSplitter, type ThinkTagReader, type ThinkTagSplitter } from './think-tags.ts'
import { textOfDetails, VendorStateReader } from './vendor-state.ts'

export type ContentOptions = {
  toolNames: ToolNames
  /** Whether reasoning is sent inside the content as `<think>…</think>`. */
  thinkTags: boolean
  /** Call ids in the history of the request. */
  takenCallIds: ReadonlySet<string>
  toolArgumentCharsMax: number
  /** `sealedBy` of the reasoning in this response; without it, none is returned to its maker. */
  sealedBy?: string
}

/** The most images of one response. */
const imagesMax = 64

type BlockKind = 'answer' | 'refusal' | 'reasoning'
type Logprobs = readonly TokenLogprob[] | undefined

/** The most whitespace that is held because it may separate two blocks, in characters. */
const heldCharsMax = 1_024

/** Turns the content of a response into events, and numbers its blocks, of which at most one is open. */
export class Content {
  protected readonly citations = new Citations()
  readonly #options: ContentOptions
  /** Created with the first call. */
  #calls: ToolCalls | null = null
  readonly #splitter: ThinkTagSplitter | null
  /** Of the open block, whose state is in this object: a further one would be cold in cache. */
  #open: BlockKind | null = null
  #chars = 0
  /** Its text, where citations refer to it. */
  #citing: string | null = null
  #block = -1
  /** Whitespace before the first other character of a block, which opens the block. */
  #held = { answer: '', refusal: '', reasoning: '' }
  #heldLogprobs: TokenLogprob[] = []
  #sawText = false
  #sawReasoning = false
  #images = 0
  #audio: AudioReader | null = null
  #vendor: VendorStateReader | null = null

  constructor(options: ContentOptions) {
    this.#options = options
    this.#splitter = options.thinkTags ? createThinkTagSplitter() : null
  }

  protected get hasCalls(): boolean {
    return this.#calls !== null && this.#calls.count > 0
  }

  /** Whether there is output, and no call breaks off in its arguments. */
  protected get isWhole(): boolean {
    return this.#block !== -1 && this.#calls?.isCut !== true
  }

  /** Reads one increment of a choice, or a whole message. */
  protected readDelta(delta: JsonObject, out: GenerationEvent[], logprobs: Logprobs) {
    const { content, annotations, function_call: legacyCall, audio } = delta
    this.#readReasoning(delta, out)
    if (typeof content === 'string') this.#writeContent(content, out, logprobs)
    else for (const part of readRecords(content)) this.#readPart(part, out, logprobs)
    if (isRecord(audio)) this.#readAudio(audio, content, out)
    for (const image of readRecords(delta['images'])) this.#writeImage(image, out)
    this.#write('refusal', readString(delta['refusal']), out)
    for (const annotation of readRecords(annotations)) this.citations.readAnnotation(annotation)
    const calls = readRecords(delta['tool_calls'])
    // The single call of older servers, which some repeat beside `tool_calls`.
    const isLegacy = calls.length === 0 && isRecord(legacyCall)
    const given = isLegacy ? [{ function: legacyCall }] : calls
    for (const [position, call] of given.entries()) this.#readCall(call, position, out)
  }

  /** Reads a message that repeats the whole response: only content that no delta contained. */
  protected readMessage(message: JsonObject, out: GenerationEvent[], logprobs: Logprobs) {
    const seen: string[] = []
    if (this.#sawText) seen.push('content', 'refusal')
    if (this.#sawReasoning) seen.push('reasoning', 'reasoning_content', 'thinking')
    if (this.hasCalls) seen.push('tool_calls', 'function_call')
    if (this.#images > 0) seen.push('images')
    if (this.#audio !== null) seen.push('audio')
    if (this.#vendor !== null) seen.push('reasoning_details', 'extra_content')
    this.readDelta(seen.length === 0 ? message : omitFields(message, seen), out, logprobs)
  }

  /** Reads an increment that contains only text, in this field. */
  protected readText(field: TextField, text: string, out: GenerationEvent[]) {
    if (field === 'content') this.#writeContent(text, out, undefined)
    else this.#write('reasoning', text, out)
  }

  /** Closes the open block and calls. `cut`: the output was truncated. */
  protected endContent(out: GenerationEvent[], cut: boolean) {
    this.#splitter?.end(this.#splitReader(out, undefined))
    this.#calls?.close(out, cut)
    // Nothing may follow a truncated call.
    const audio = this.#audio?.hasData === true && !(cut && this.hasCalls) ? this.#audio : null
    this.#close(out, !cut || audio !== null)
    if (audio !== null) this.#emitItem(audio.take(cut ? 'incomplete' : 'completed'), out)
    if (!cut) this.#emitState(out)
  }

  #readReasoning(delta: JsonObject, out: GenerationEvent[]) {
    const { reasoning_content, reasoning, thinking, reasoning_details, extra_content } = delta
    if (reasoning_details) this.#openVendor()?.addDetails(reasoning_details)
    if (extra_content) this.#openVendor()?.addExtra(null, extra_content)
    // A server that sends several fields sends the same text in each.
    const text =
      readString(reasoning_content) ||
      readString(reasoning) ||
      readString(thinking) ||
      textOfDetails(reasoning_details)
    this.#write('reasoning', text, out)
  }

  /** The transcript is the answer, unless the server repeats it as content. */
  #readAudio(audio: JsonObject, content: unknown, out: GenerationEvent[]) {
    this.#audio ??= new AudioReader()
    const transcript = this.#audio.add(audio)
    if (readString(content) === '') this.#write('answer', transcript, out)
  }

  #writeImage(image: JsonObject, out: GenerationEvent[]) {
    const item = imageItem(image)
    if (item === null) return
    if (++this.#images > imagesMax) throw invalidResponse('sent too many images')
    this.#calls?.close(out, false)
    this.#emitItem(item, out)
  }

  #emitItem(item: HostedToolItem, out: GenerationEvent[]) {
    const block = this.#claimBlock(out)
    out.push({ type: 'hosted-tool-start', block, item }, { type: 'hosted-tool-end', block, item })
  }

  /** Null where the state could not be returned to its maker. */
  #openVendor(): VendorStateReader | null {
    if (this.#options.sealedBy !== undefined) this.#vendor ??= new VendorStateReader()
    return this.#vendor
  }

  /** Emits state that belongs to no reasoning as a block without text. */
  #emitState(out: GenerationEvent[]) {
    const sealed = this.#vendor?.take() ?? null
    if (sealed === null) return
    const block = ++this.#block
    const end = { type: 'reasoning-end', block, complete: true, ...this.#seal(sealed) } as const
    out.push({ type: 'reasoning-start', block }, end)
  }

  #seal(sealed: string | null): { sealed?: string; sealedBy?: string } {
    if (this.#options.sealedBy === undefined) return {}
    return { ...(sealed === null ? {} : { sealed }), sealedBy: this.#options.sealedBy }
  }

  /** Content as a list of parts, which Mistral uses for reasoning. */
  #readPart(part: JsonObject, out: GenerationEvent[], logprobs: Logprobs) {
    const { type, thinking, text, refusal } = part
    if (type === 'thinking') {
      const pieces = Array.isArray(thinking) ? readRecords(thinking) : [{ text: thinking }]
      for (const piece of pieces) this.#write('reasoning', readString(piece['text']), out)
    } else if (type === 'image_url') {
      this.#writeImage(part, out)
    } else if (readString(text) !== '') {
      this.#writeContent(readString(text), out, logprobs)
    } else {
      this.#write('refusal', readString(refusal), out)
    }
  }

  #readCall(entry: JsonObject, position: number, out: GenerationEvent[]) {
    const { index, id, function: call, extra_content: extra } = entry
    const { name, arguments: input } = asRecord(call)
    const indexGiven = typeof index === 'number'
    const piece = {
      index: indexGiven ? index : position,
      indexGiven,
      id: readString(id),
      name: readString(name),
      text: readJsonText(input),
      extra,
    }
    if (piece.id === '' && piece.name === '' && piece.text === '' && !extra) return
    this.#dropHeld()
    this.#openCalls().push(piece, out)
  }

  #openCalls(): ToolCalls {
    const { toolNames, takenCallIds, toolArgumentCharsMax } = this.#options
    this.#calls ??= new ToolCalls({
      head: toolNames.head,
      openBlock: (out) => this.#claimBlock(out),
      addExtra: (callId, extra) => this.#openVendor()?.addExtra(callId, extra),
      takenCallIds,
      heldCharsMax: toolArgumentCharsMax,
    })
    return this.#calls
  }

  #writeContent(content: string, out: GenerationEvent[], logprobs: Logprobs) {
    if (this.#splitter === null) this.#write('answer', content, out, logprobs)
    else this.#splitter.push(content, this.#splitReader(out, logprobs))
  }

  #splitReader(out: GenerationEvent[], logprobs: Logprobs): ThinkTagReader {
    return {
      reasoning: (text) => this.#write('reasoning', text, out),
      text: (text) => this.#write('answer', text, out, logprobs),
    }
  }

  /** Appends to the block of this kind, or opens it. `logprobs` only for an answer. */
  #write(kind: BlockKind, text: string, out: GenerationEvent[], logprobs?: Logprobs) {
    if (text === '') return
    if (this.#open === kind) {
      this.#append(kind, text, out, logprobs)
      return
    }
    this.#held[kind] += text
    if (logprobs !== undefined) this.#heldLogprobs.push(...logprobs)
    const held = this.#held[kind]
    // Whitespace alone opens no block: models emit it between their reasoning and a tool call.
    if (held.length <= heldCharsMax && !/\S/.test(held)) return
    const heldLogprobs = logprobs === undefined ? undefined : this.#heldLogprobs
    this.#begin(kind, out)
    this.#append(kind, held, out, heldLogprobs)
  }

  #begin(kind: BlockKind, out: GenerationEvent[]) {
    this.#calls?.close(out, false)
    const block = this.#claimBlock(out, kind)
    this.#open = kind
    this.#chars = 0
    this.#citing = this.citations.wantsText() ? '' : null
    this.#dropHeld()
    if (kind === 'reasoning') {
      this.#sawReasoning = true
      out.push({ type: 'reasoning-start', block })
    } else {
      this.#sawText = true
      out.push({ type: 'text-start', block, form: kind })
    }
  }

  #append(kind: BlockKind, text: string, out: GenerationEvent[], logprobs: Logprobs) {
    const block = this.#block
    if (kind === 'reasoning') {
      out.push({ type: 'reasoning-delta', block, part: 0, text })
      return
    }
    this.#chars += text.length
    if (this.#citing !== null) this.#citing += text
    if (logprobs === undefined) out.push({ type: 'text-delta', block, text })
    else out.push({ type: 'text-delta', block, text, logprobs })
  }

  #close(out: GenerationEvent[], complete: boolean) {
    const block = this.#block
    const open = this.#open
    this.#open = null
    if (open === 'reasoning') {
      const seal = this.#seal(this.#vendor?.take() ?? null)
      out.push({ type: 'reasoning-end', block, complete, ...seal })
    } else if (open !== null) {
      if (open === 'answer') {
        for (const citation of this.citations.take(this.#citing, this.#chars)) {
          out.push({ type: 'citation', block, citation })
        }
      }
      out.push({ type: 'text-end', block, complete })
    }
  }

  /** Closes the open block and returns the number of a block that the caller opens. */
  #claimBlock(out: GenerationEvent[], kind?: BlockKind): number {
    this.#close(out, true)
    // State that precedes reasoning is part of it.
    if (kind !== 'reasoning') this.#emitState(out)
    return ++this.#block
  }

  #dropHeld() {
    this.#held = { answer: '', refusal: '', reasoning: '' }
    this.#heldLogprobs = []
  }
}
