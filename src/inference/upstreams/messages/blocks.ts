import type { GenerationEvent, RelayFrame } from '#inference/events.ts'
import { ToolCalls } from '#inference/tool-calls.ts'
import type { ToolNames } from '#inference/tools.ts'
import { readString } from '#inference/upstream-fields.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { Citations } from './citations.ts'
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
  | { kind: 'text'; citations: Citations }
  | { kind: 'reasoning'; sealed: string }
  | { kind: 'call'; index: number; input: string; hasDeltas: boolean }
  | { kind: 'hosted'; tool: HostedTool }

/** Converts the ordered frames of blocks to events. */
export type BlockReader = {
  readonly maker: string
  readonly calls: ToolCalls
  /** The number of the latest block. */
  block: number
  open: Open | null
  /** Whether the current block has no representation as events. */
  isSkipped: boolean
}

export function createBlockReader(options: BlockReaderOptions): BlockReader {
  const reader: BlockReader = {
    maker: options.sealedBy,
    calls: new ToolCalls({
      head: options.toolNames.head,
      openBlock: () => ++reader.block,
      takenCallIds: options.takenCallIds,
      heldCharsMax: options.toolArgumentCharsMax,
    }),
    block: -1,
    open: null,
    isSkipped: false,
  }
  return reader
}

export function readFrame(
  reader: BlockReader,
  { payload, sealed }: RelayFrame,
  out: GenerationEvent[],
): void {
  const { type } = payload
  if (type === 'content_block_start') {
    startBlock(reader, { shell: asRecord(payload['content_block']), sealed, payload }, out)
  } else if (reader.isSkipped) return
  else if (type === 'content_block_delta') {
    if (sealed !== undefined && reader.open?.kind === 'reasoning') reader.open.sealed = sealed
    readDelta(reader, asRecord(payload['delta']), out)
  } else if (type === 'content_block_stop') stopBlock(reader, out)
}

export function hasToolCalls({ calls }: BlockReader): boolean {
  return calls.count > 0
}

type Start = { shell: JsonObject; sealed: string | undefined; payload: JsonObject }

function startBlock(
  reader: BlockReader,
  { shell, sealed, payload }: Start,
  out: GenerationEvent[],
): void {
  const type = readString(shell['type'])
  reader.isSkipped = false
  if (type === 'text') {
    startText(reader, shell, out)
  } else if (type === 'thinking' || type === 'redacted_thinking') {
    endBlocks(reader, out, false)
    reader.open = { kind: 'reasoning', sealed: sealed ?? '' }
    out.push({ type: 'reasoning-start', block: ++reader.block })
    appendReasoning(reader, readString(shell['thinking']), out)
  } else if (type === 'tool_use') {
    startCall(reader, shell, { index: Number(payload['index']), out })
  } else {
    startHosted(reader, shell, out)
  }
}

/** Consecutive text blocks are one text that the protocol divides by its citations. */
function startText(reader: BlockReader, shell: JsonObject, out: GenerationEvent[]): void {
  if (reader.open?.kind !== 'text') {
    endBlocks(reader, out, false)
    reader.open = { kind: 'text', citations: new Citations() }
  }
  appendText(reader, readString(shell['text']), out)
}

function startCall(
  reader: BlockReader,
  shell: JsonObject,
  { index, out }: { index: number; out: GenerationEvent[] },
): void {
  endBlocks(reader, out, false)
  reader.open = { kind: 'call', index, input: readInput(shell['input']), hasDeltas: false }
  const names = { id: readString(shell['id']), name: readString(shell['name']) }
  reader.calls.push({ index, indexGiven: true, ...names, text: '' }, out)
}

function startHosted(reader: BlockReader, shell: JsonObject, out: GenerationEvent[]): void {
  if (reader.open?.kind === 'hosted' && reader.open.tool.acceptResult(shell)) {
    // The other frames of the result contain nothing more.
    reader.isSkipped = true
    return
  }
  const tool = isToolUse(readString(shell['type'])) ? createHostedTool(shell) : null
  reader.isSkipped = tool === null
  if (tool === null) return
  endBlocks(reader, out, false)
  reader.open = { kind: 'hosted', tool }
  out.push({ type: 'hosted-tool-start', block: ++reader.block, item: tool.item() })
}

function readDelta(reader: BlockReader, delta: JsonObject, out: GenerationEvent[]): void {
  const { open } = reader
  switch (delta['type']) {
    case 'text_delta':
      appendText(reader, readString(delta['text']), out)
      break
    case 'citations_delta':
      if (open?.kind === 'text') open.citations.add(delta['citation'])
      break
    case 'thinking_delta':
      appendReasoning(reader, readString(delta['thinking']), out)
      break
    case 'input_json_delta':
      appendInput(reader, readString(delta['partial_json']), out)
      break
  }
}

/** A text begins with its first character: servers open empty text blocks before a call. */
function appendText(reader: BlockReader, text: string, out: GenerationEvent[]): void {
  if (text === '' || reader.open?.kind !== 'text') return
  const { citations } = reader.open
  if (citations.chars() === 0) {
    out.push({ type: 'text-start', block: ++reader.block, form: 'answer' })
  }
  citations.advance(text.length)
  out.push({ type: 'text-delta', block: reader.block, text })
}

function appendReasoning(reader: BlockReader, text: string, out: GenerationEvent[]): void {
  if (text === '' || reader.open?.kind !== 'reasoning') return
  out.push({ type: 'reasoning-delta', block: reader.block, part: 0, text })
}

function appendInput(reader: BlockReader, text: string, out: GenerationEvent[]): void {
  const { open } = reader
  if (text === '') return
  if (open?.kind === 'call') {
    open.hasDeltas = true
    reader.calls.push({ index: open.index, indexGiven: true, id: '', name: '', text }, out)
  } else if (open?.kind === 'hosted') {
    open.tool.appendInput(text)
    if (!open.tool.streamsInput()) return
    out.push({ type: 'hosted-tool-delta', block: reader.block, text })
  }
}

function stopBlock(reader: BlockReader, out: GenerationEvent[]): void {
  const { open } = reader
  if (open?.kind === 'text') {
    for (const citation of open.citations.take()) {
      out.push({ type: 'citation', block: reader.block, citation })
    }
  } else if (open?.kind === 'call' && !open.hasDeltas && open.input !== '') {
    appendInput(reader, open.input, out)
  }
}

/** Ends the open block. `cut`: the output was truncated. */
export function endBlocks(reader: BlockReader, out: GenerationEvent[], cut: boolean): void {
  const { open, block } = reader
  reader.open = null
  switch (open?.kind) {
    case 'text':
      if (open.citations.chars() > 0) out.push({ type: 'text-end', block, complete: !cut })
      break
    case 'reasoning': {
      const { sealed } = open
      const seal = sealed === '' ? {} : { sealed, sealedBy: reader.maker }
      out.push({ type: 'reasoning-end', block, complete: !cut, ...seal })
      break
    }
    case 'call':
      reader.calls.close(out, cut)
      break
    case 'hosted':
      out.push({ type: 'hosted-tool-end', block, item: cut ? null : open.tool.finalItem() })
      break
  }
}
