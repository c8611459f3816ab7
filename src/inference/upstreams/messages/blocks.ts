import type { Citation, GenerationEvent, RelayFrame } from '#inference/events.ts'
import { type ToolCallPiece, ToolCalls } from '#inference/tool-calls.ts'
import type { ToolNames } from '#inference/tools.ts'
import { citationsMax, readString } from '#inference/upstream-fields.ts'
import { asRecord, isRecord, type JsonObject } from '#lib/json.ts'
import { createHostedTool, type HostedTool } from './hosted-tool.ts'
import { isToolUse, readInput } from './wire.ts'

export type BlockReaderOptions = {
  toolNames: Pick<ToolNames, 'head'>
  /** `sealedBy` of the reasoning in this response. */
  sealedBy: string
  /** Call ids in the history of the request. */
  takenCallIds: ReadonlySet<string>
  toolArgumentCharsMax: number
}

/** The open block. It ends when another one begins or the message ends, which tells how it ended. */
type Open =
  | OpenText
  | { kind: 'reasoning'; sealed: string }
  | { kind: 'call'; index: number; input: string; hasDeltas: boolean }
  | { kind: 'hosted'; tool: HostedTool }

/** Converts the ordered frames of blocks to events. */
export class BlockReader {
  readonly #options: BlockReaderOptions
  /** Null until the first call. */
  #calls: ToolCalls | null = null
  /** The number of the latest block. */
  #block = -1
  #open: Open | null = null
  /** Whether the current block has no representation as events. */
  #isSkipped = false
  /** Receives the events; set for each frame. */
  #out: GenerationEvent[] = []

  constructor(options: BlockReaderOptions) {
    this.#options = options
  }

  read({ payload, sealed }: RelayFrame, out: GenerationEvent[]) {
    this.#out = out
    const { type } = payload
    if (type === 'content_block_start') {
      this.#start(asRecord(payload['content_block']), sealed ?? '', Number(payload['index']))
    } else if (this.#isSkipped) return
    else if (type === 'content_block_delta') {
      if (sealed !== undefined && this.#open?.kind === 'reasoning') this.#open.sealed = sealed
      this.#readDelta(asRecord(payload['delta']))
    } else if (type === 'content_block_stop') this.#stop()
  }

  hasToolCalls(): boolean {
    return this.#calls !== null && this.#calls.count > 0
  }

  /** Ends the open block. `cut`: the output was truncated. */
  end(out: GenerationEvent[], cut: boolean) {
    const block = this.#block
    const open = this.#open
    this.#open = null
    switch (open?.kind) {
      case 'text':
        if (open.chars > 0) out.push({ type: 'text-end', block, complete: !cut })
        break
      case 'reasoning': {
        const { sealed } = open
        const seal = sealed === '' ? {} : { sealed, sealedBy: this.#options.sealedBy }
        out.push({ type: 'reasoning-end', block, complete: !cut, ...seal })
        break
      }
      case 'call':
        this.#calls?.close(out, cut)
        break
      case 'hosted':
        out.push({ type: 'hosted-tool-end', block, item: cut ? null : open.tool.finalItem() })
        break
    }
  }

  #start(shell: JsonObject, sealed: string, index: number) {
    this.#isSkipped = false
    switch (shell['type']) {
      case 'text':
        // Consecutive text blocks are one text that the protocol divides by its citations.
        if (this.#open?.kind !== 'text') this.#replace(new OpenText())
        this.#appendText(readString(shell['text']))
        break
      case 'thinking':
      case 'redacted_thinking':
        this.#replace({ kind: 'reasoning', sealed })
        this.#out.push({ type: 'reasoning-start', block: ++this.#block })
        this.#appendReasoning(readString(shell['thinking']))
        break
      case 'tool_use': {
        const input = readInput(shell['input'])
        this.#replace({ kind: 'call', index, input, hasDeltas: false })
        const names = { id: readString(shell['id']), name: readString(shell['name']) }
        this.#pushCall({ index, indexGiven: true, ...names, text: '' })
        break
      }
      default:
        this.#startHosted(shell)
    }
  }

  #startHosted(shell: JsonObject) {
    if (this.#open?.kind === 'hosted' && this.#open.tool.acceptResult(shell)) {
      // The other frames of the result contain nothing more.
      this.#isSkipped = true
      return
    }
    const tool = isToolUse(readString(shell['type'])) ? createHostedTool(shell) : null
    this.#isSkipped = tool === null
    if (tool === null) return
    this.#replace({ kind: 'hosted', tool })
    this.#out.push({ type: 'hosted-tool-start', block: ++this.#block, item: tool.item() })
  }

  /** Ends the open block and opens the next one. */
  #replace(next: Open) {
    this.end(this.#out, false)
    this.#open = next
  }

  #readDelta(delta: JsonObject) {
    switch (delta['type']) {
      case 'text_delta':
        this.#appendText(readString(delta['text']))
        break
      case 'citations_delta':
        if (this.#open?.kind === 'text') this.#open.cite(delta['citation'])
        break
      case 'thinking_delta':
        this.#appendReasoning(readString(delta['thinking']))
        break
      case 'input_json_delta':
        this.#appendInput(readString(delta['partial_json']))
        break
    }
  }

  /** A text begins with its first character: servers open empty text blocks before a call. */
  #appendText(text: string) {
    const open = this.#open
    if (text === '' || open?.kind !== 'text') return
    if (open.chars === 0) {
      this.#out.push({ type: 'text-start', block: ++this.#block, form: 'answer' })
    }
    open.chars += text.length
    this.#out.push({ type: 'text-delta', block: this.#block, text })
  }

  #appendReasoning(text: string) {
    if (text === '' || this.#open?.kind !== 'reasoning') return
    this.#out.push({ type: 'reasoning-delta', block: this.#block, part: 0, text })
  }

  #appendInput(text: string) {
    const open = this.#open
    if (text === '') return
    if (open?.kind === 'call') {
      open.hasDeltas = true
      const { index } = open
      this.#pushCall({ index, indexGiven: true, id: '', name: '', text })
    } else if (open?.kind === 'hosted') {
      open.tool.appendInput(text)
      if (!open.tool.streamsInput()) return
      this.#out.push({ type: 'hosted-tool-delta', block: this.#block, text })
    }
  }

  #pushCall(piece: ToolCallPiece) {
    const { toolNames, takenCallIds, toolArgumentCharsMax } = this.#options
    this.#calls ??= new ToolCalls({
      head: toolNames.head,
      openBlock: () => ++this.#block,
      takenCallIds,
      heldCharsMax: toolArgumentCharsMax,
    })
    this.#calls.push(piece, this.#out)
  }

  #stop() {
    const open = this.#open
    if (open?.kind === 'text') {
      for (const citation of open.takeCitations()) {
        this.#out.push({ type: 'citation', block: this.#block, citation })
      }
    } else if (open?.kind === 'call' && !open.hasDeltas) {
      this.#appendInput(open.input)
    }
  }
}

/** A text, which arrives in pieces; each of its citations covers one whole piece. */
class OpenText {
  readonly kind = 'text'
  /** Its length so far. */
  chars = 0
  #pieceStart = 0
  #pending: unknown[] = []
  #count = 0

  cite(citation: unknown) {
    if (this.#count < citationsMax) this.#pending.push(citation)
    this.#count += 1
  }

  /** The citations of the piece that ends; none where it has no text. */
  takeCitations(): Citation[] {
    const range = { startIndex: this.#pieceStart, endIndex: this.chars }
    const pending = this.chars === 0 ? [] : this.#pending
    this.#pending = []
    this.#pieceStart = this.chars
    return pending.flatMap((citation) => readCitation(citation, range))
  }
}

/** Returns none for a position in a document of the request, which events cannot represent. */
function readCitation(
  citation: unknown,
  range: { startIndex: number; endIndex: number },
): Citation[] {
  if (!isRecord(citation)) return []
  const url = readString(citation['url']) || readString(citation['source'])
  const title = readString(citation['title'])
  if (/^https?:/.test(url))
    return [{ kind: 'url', url, title: title === '' ? url : title, ...range }]
  const fileId = readString(citation['file_id'])
  if (fileId === '') return []
  const filename = readString(citation['document_title'])
  return [{ kind: 'file', fileId, filename, index: range.endIndex }]
}
