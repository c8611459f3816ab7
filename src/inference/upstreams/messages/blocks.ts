import type { GenerationEvent, RelayFrame } from '#inference/events.ts'
import { createToolCalls, type ToolCalls } from '#inference/tool-calls.ts'
import type { ToolNames } from '#inference/tool-names.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { Citations } from './citations.ts'
import { createHostedTool, type HostedTool } from './hosted-tool.ts'
import { isToolUse, readInput, readText } from './wire.ts'

export type BlockReaderOptions = {
  toolNames: Pick<ToolNames, 'head'>
  /** Whose the sealed payloads of this answer are. */
  maker: string
  /** Call ids that the request's history uses. */
  takenCallIds: ReadonlySet<string>
  toolArgumentCharsMax: number
}

/** What goes on until another block begins, or the message ends: only then is it known how it ends. */
type Open =
  | { kind: 'text'; citations: Citations }
  | { kind: 'reasoning'; sealed: string }
  | { kind: 'call'; index: number; given: string; hasDeltas: boolean }
  | { kind: 'hosted'; tool: HostedTool }

/** Turns the frames of blocks, which come in order, into events. */
export type BlockReader = {
  readonly maker: string
  readonly calls: ToolCalls
  /** The number of the block that was begun last. */
  block: number
  open: Open | null
  /** Whether the frames are of a block that no event tells of. */
  isForeign: boolean
}

export function createBlockReader(options: BlockReaderOptions): BlockReader {
  const reader: BlockReader = {
    maker: options.maker,
    calls: createToolCalls({
      head: options.toolNames.head,
      openBlock: () => ++reader.block,
      takenCallIds: options.takenCallIds,
      heldCharsMax: options.toolArgumentCharsMax,
    }),
    block: -1,
    open: null,
    isForeign: false,
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
    start(reader, { shell: asRecord(payload['content_block']), sealed, payload }, out)
  } else if (reader.isForeign) return
  else if (type === 'content_block_delta') {
    if (sealed !== undefined && reader.open?.kind === 'reasoning') reader.open.sealed = sealed
    grow(reader, asRecord(payload['delta']), out)
  } else if (type === 'content_block_stop') stop(reader, out)
}

export function hasToolCalls({ calls }: BlockReader): boolean {
  return calls.count() > 0
}

type Start = { shell: JsonObject; sealed: string | undefined; payload: JsonObject }

function start(
  reader: BlockReader,
  { shell, sealed, payload }: Start,
  out: GenerationEvent[],
): void {
  const type = readText(shell['type'])
  reader.isForeign = false
  if (type === 'text') {
    startText(reader, shell, out)
  } else if (type === 'thinking' || type === 'redacted_thinking') {
    endBlocks(reader, out, false)
    reader.open = { kind: 'reasoning', sealed: sealed ?? '' }
    out.push({ type: 'reasoning-start', block: ++reader.block })
    think(reader, readText(shell['thinking']), out)
  } else if (type === 'tool_use') {
    startCall(reader, shell, { index: Number(payload['index']), out })
  } else {
    startHosted(reader, shell, out)
  }
}

/** Texts that follow one another are one: they are divided only by what they cite. */
function startText(reader: BlockReader, shell: JsonObject, out: GenerationEvent[]): void {
  if (reader.open?.kind !== 'text') {
    endBlocks(reader, out, false)
    reader.open = { kind: 'text', citations: new Citations() }
  }
  say(reader, readText(shell['text']), out)
}

function startCall(
  reader: BlockReader,
  shell: JsonObject,
  { index, out }: { index: number; out: GenerationEvent[] },
): void {
  endBlocks(reader, out, false)
  reader.open = { kind: 'call', index, given: readInput(shell['input']), hasDeltas: false }
  const names = { id: readText(shell['id']), name: readText(shell['name']) }
  reader.calls.push({ index, indexGiven: true, ...names, text: '' }, out)
}

function startHosted(reader: BlockReader, shell: JsonObject, out: GenerationEvent[]): void {
  if (reader.open?.kind === 'hosted' && reader.open.tool.takeResult(shell)) {
    // Its own frames tell nothing more.
    reader.isForeign = true
    return
  }
  const tool = isToolUse(readText(shell['type'])) ? createHostedTool(shell) : null
  reader.isForeign = tool === null
  if (tool === null) return
  endBlocks(reader, out, false)
  reader.open = { kind: 'hosted', tool }
  out.push({ type: 'hosted-tool-start', block: ++reader.block, item: tool.item() })
}

function grow(reader: BlockReader, delta: JsonObject, out: GenerationEvent[]): void {
  const { open } = reader
  switch (delta['type']) {
    case 'text_delta':
      say(reader, readText(delta['text']), out)
      break
    case 'citations_delta':
      if (open?.kind === 'text') open.citations.add(delta['citation'])
      break
    case 'thinking_delta':
      think(reader, readText(delta['thinking']), out)
      break
    case 'input_json_delta':
      takeInput(reader, readText(delta['partial_json']), out)
      break
  }
}

/** A text begins with its first character: servers open one before a call, and say nothing. */
function say(reader: BlockReader, text: string, out: GenerationEvent[]): void {
  if (text === '' || reader.open?.kind !== 'text') return
  const { citations } = reader.open
  if (citations.chars() === 0) {
    out.push({ type: 'text-start', block: ++reader.block, form: 'answer' })
  }
  citations.passText(text.length)
  out.push({ type: 'text-delta', block: reader.block, text })
}

function think(reader: BlockReader, text: string, out: GenerationEvent[]): void {
  if (text === '' || reader.open?.kind !== 'reasoning') return
  out.push({ type: 'reasoning-delta', block: reader.block, part: 0, text })
}

function takeInput(reader: BlockReader, text: string, out: GenerationEvent[]): void {
  const { open } = reader
  if (text === '') return
  if (open?.kind === 'call') {
    open.hasDeltas = true
    reader.calls.push({ index: open.index, indexGiven: true, id: '', name: '', text }, out)
  } else if (open?.kind === 'hosted') {
    open.tool.takeInput(text)
    if (!open.tool.tellsInput()) return
    out.push({ type: 'hosted-tool-delta', block: reader.block, text })
  }
}

function stop(reader: BlockReader, out: GenerationEvent[]): void {
  const { open } = reader
  if (open?.kind === 'text') {
    for (const citation of open.citations.take()) {
      out.push({ type: 'citation', block: reader.block, citation })
    }
  } else if (open?.kind === 'call' && !open.hasDeltas && open.given !== '') {
    takeInput(reader, open.given, out)
  }
}

/** Ends what is open. `cut`: the model was stopped in the middle. */
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
      out.push({ type: 'hosted-tool-end', block, item: cut ? null : open.tool.ended() })
      break
  }
}
