import type { TextForm, TokenLogprob } from '#inference/events.ts'
import { readLogprobs, readText } from '#inference/upstream-fields.ts'
import type { JsonObject } from '#lib/json.ts'
import { type Output, OutputItem, SentText } from './output.ts'
import { charsOf, readCitation, readContents, type TextContent, textCharsOf } from './read.ts'
import type { TextLabel } from './wire.ts'

/** One part of an item: a text, or a paragraph of reasoning. */
class Part extends SentText {
  readonly label: TextLabel
  /** The upstream's number of the part; null where it sends none. */
  index: number | null = null
  /** The upstream declared it complete. */
  done = false

  constructor(label: TextLabel) {
    super()
    this.label = label
  }
}

/**
 * An item of text. Each part of a message becomes a block; the parts of a reasoning item are the
 * paragraphs of one block.
 */
export abstract class TextItem extends OutputItem {
  /** What was emitted; `parts` are those that carried text and identify the parts of the final item. */
  protected readonly sent = { chars: 0, parts: 0 }
  protected readonly sentSummary = { chars: 0, parts: 0 }
  protected current: Part | null = null
  protected annotationsSeen = 0

  /** The text emitted so far, in characters. */
  get sentChars(): number {
    return this.sent.chars + this.sentSummary.chars
  }

  isRepeatedBy(source: JsonObject) {
    return this.sentChars === textCharsOf(source)
  }

  announcePart(label: TextLabel, index: number | null) {
    const { current } = this
    if (current === null || opensNewPart(current, label, index)) this.openPart(label).index = index
    else current.index ??= index
  }

  /** Emits a delta, which belongs to the current part unless its label or its index differs. */
  add(label: TextLabel, index: number | null, text: string, logprobs: unknown) {
    this.announcePart(label, index)
    if (this.current !== null) this.#send(this.current, text, logprobs)
  }

  /** Completes a part: emits what was not streamed of its text. */
  complete(label: TextLabel, whole: string, logprobs: unknown) {
    const { current } = this
    const isCurrent =
      current !== null && current.label === label && (!current.done || current.isPrefixOf(whole))
    const part = isCurrent ? current : this.openPart(label)
    // Which tokens of a partly streamed text are missing is unknown.
    this.#send(part, part.missingIn(whole), part.chars === 0 ? logprobs : null)
    part.done = true
  }

  /** Emits a citation. */
  annotate(_annotation: unknown) {}

  protected abstract openBlock(label: TextLabel): void
  protected abstract appendText(isNewPart: boolean, text: string, logprobs: unknown): void

  protected openPart(label: TextLabel): Part {
    this.settled = false
    this.current = new Part(label)
    return this.current
  }

  /** Emits the parts, text and citations of the finished item that were not streamed. */
  protected finishParts(contents: readonly TextContent[], sent: { chars: number; parts: number }) {
    const isMissing = charsOf(contents) > sent.chars
    const { annotationsSeen } = this
    const lastSent = sent.parts - 1
    let annotations = 0
    for (const [index, { label, text, logprobs, ...content }] of contents.entries()) {
      if (isMissing && index > lastSent) {
        const part = this.openPart(label)
        this.#send(part, text, logprobs)
        part.done = true
      } else if (isMissing && index === lastSent) {
        this.complete(label, text, logprobs)
      }
      for (const annotation of content.annotations) {
        const isNew = annotations++ >= annotationsSeen
        if (isNew && this.isOpen && index >= lastSent) this.annotate(annotation)
      }
    }
  }

  #send(part: Part, text: string, logprobs: unknown) {
    if (text === '') return
    if (!this.isOpen) this.openBlock(part.label)
    const sent = part.label === 'summary' ? this.sentSummary : this.sent
    const isFirst = part.chars === 0
    if (isFirst) sent.parts++
    sent.chars += text.length
    part.record(text)
    this.appendText(isFirst, text, logprobs)
  }
}

/** vLLM continues the numbers of content parts from item to item, and other servers omit them. */
export class Message extends TextItem {
  #phase: string | null = null

  constructor(output: Output) {
    super(output, 'message', 'message')
  }

  announce(source: JsonObject) {
    this.#phase ??= readText(source['phase'])
  }

  override annotate(annotation: unknown) {
    this.annotationsSeen++
    const citation = readCitation(annotation)
    if (citation === null) return
    if (!this.isOpen) {
      const part = this.current ?? this.openPart('answer')
      // The block of this text was closed when its item yielded.
      if (part.chars > 0) return
      this.openBlock(part.label)
    }
    this.append({ type: 'citation', block: this.block, citation })
  }

  finish(final: JsonObject) {
    this.announce(final)
    this.finishParts(readContents(final['content']), this.sent)
  }

  close(complete: boolean) {
    if (this.isOpen) this.append({ type: 'text-end', block: this.block, complete })
    this.isOpen = false
  }

  protected override openPart(label: TextLabel): Part {
    this.close(true)
    return super.openPart(label)
  }

  protected openBlock(label: TextLabel) {
    const form: TextForm = label === 'refusal' ? 'refusal' : 'answer'
    const phase = this.#phase === null ? {} : { phase: this.#phase }
    this.beginBlock({ type: 'text-start', block: this.block, form, ...phase })
  }

  protected appendText(_isNewPart: boolean, text: string, wireLogprobs: unknown) {
    const { block } = this
    const logprobs = this.output.options.logprobs ? readLogprobs(wireLogprobs) : noLogprobs
    this.append(
      logprobs.length === 0
        ? { type: 'text-delta', block, text }
        : { type: 'text-delta', block, text, logprobs },
    )
  }
}

const noLogprobs: readonly TokenLogprob[] = []

export class Reasoning extends TextItem {
  /** The number of the paragraph within the open block; -1 before the first. */
  #paragraph = -1
  /** The sealed payload, between the end of the item and the end of its block. */
  #sealed: string | null = null

  constructor(output: Output) {
    super(output, 'reasoning', 'reasoning')
  }

  announce() {}

  /** Emits the paragraphs of the finished item that were not streamed, and its sealed payload. */
  finish(final: JsonObject) {
    const { sent, sentSummary } = this
    const raw = readContents(final['content'], 'raw')
    const summary = readContents(final['summary'], 'summary')
    const isSame = withoutSpace(raw) === withoutSpace(summary)
    // Some servers send the same text in both carriers, or stream it in one and end with the other.
    const isIn = (other: TextContent[], sentOther: { chars: number }) =>
      sentOther.chars > 0 && (isSame || other.length === 0)
    if (sent.chars > 0 || !isIn(summary, sentSummary)) this.finishParts(raw, sent)
    if (sentSummary.chars > 0 || !isIn(raw, sent)) this.finishParts(summary, sentSummary)
    this.#sealed = readText(final['encrypted_content'])
    if (this.#sealed !== null && !this.isOpen) this.openBlock()
  }

  close(complete: boolean) {
    if (!this.isOpen) return
    const { sealedBy } = this.output.options
    const seal = this.#sealed === null ? {} : { sealed: this.#sealed, sealedBy }
    this.append({ type: 'reasoning-end', block: this.block, complete, ...seal })
    this.isOpen = false
    this.#sealed = null
  }

  protected openBlock() {
    this.#paragraph = -1
    this.beginBlock({ type: 'reasoning-start', block: this.block })
  }

  protected appendText(isNewPart: boolean, text: string) {
    if (isNewPart || this.#paragraph === -1) this.#paragraph++
    this.append({ type: 'reasoning-delta', block: this.block, part: this.#paragraph, text })
  }
}

function withoutSpace(contents: readonly TextContent[]): string {
  return contents.map(({ text }) => text.replace(/\s+/g, '')).join('')
}

function opensNewPart(current: Part, label: TextLabel, index: number | null): boolean {
  if (current.label !== label || current.done) return true
  return current.index !== null && index !== null && current.index !== index
}
