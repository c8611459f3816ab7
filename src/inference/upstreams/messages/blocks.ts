import type { GenerationEvent, RelayFrame } from '#inference/events.ts'
import { createToolCalls, type ToolCalls } from '#inference/tool-calls.ts'
import type { ToolOffer } from '#inference/tool-names.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { type Citations, createCitations } from './citations.ts'
import { createHostedTool, type HostedTool } from './hosted-tool.ts'
import { isToolUse, readInput, readText } from './wire.ts'

export type BlockReaderOptions = {
  offer: Pick<ToolOffer, 'head'>
  /** Whose the sealed payloads of this answer are. */
  maker: string
  /** Call ids that the request's history uses. */
  takenCallIds: ReadonlySet<string>
  toolArgumentCharsMax: number
}

/** Turns the frames of blocks, which come in order, into events. */
export type BlockReader = {
  read(frame: RelayFrame, out: GenerationEvent[]): void
  /** Ends what is open. `cut`: the model was stopped in the middle. */
  end(out: GenerationEvent[], cut: boolean): void
  hasToolCalls(): boolean
}

/** What goes on until another block begins, or the message ends: only then is it known how it ends. */
type Open =
  | { kind: 'text'; citations: Citations }
  | { kind: 'reasoning'; sealed: string }
  | { kind: 'call'; index: number; given: string; hasDeltas: boolean }
  | { kind: 'hosted'; tool: HostedTool }

type State = {
  readonly options: BlockReaderOptions
  readonly calls: ToolCalls
  /** The number of the block that was begun last. */
  block: number
  open: Open | null
  /** Whether the frames are of a block that no event tells of. */
  isForeign: boolean
}

export function createBlockReader(options: BlockReaderOptions): BlockReader {
  const state: State = {
    options,
    calls: createToolCalls({
      head: options.offer.head,
      openBlock: () => ++state.block,
      takenCallIds: options.takenCallIds,
      heldCharsMax: options.toolArgumentCharsMax,
    }),
    block: -1,
    open: null,
    isForeign: false,
  }
  return {
    read({ payload, sealed }, out) {
      const { type } = payload
      if (type === 'content_block_start') {
        start(state, { shell: asRecord(payload['content_block']), sealed, payload }, out)
      } else if (state.isForeign) return
      else if (type === 'content_block_delta') {
        if (sealed !== undefined && state.open?.kind === 'reasoning') state.open.sealed = sealed
        grow(state, asRecord(payload['delta']), out)
      } else if (type === 'content_block_stop') stop(state, out)
    },
    end: (out, cut) => close(state, out, cut),
    hasToolCalls: () => state.calls.count() > 0,
  }
}

type Start = { shell: JsonObject; sealed: string | undefined; payload: JsonObject }

function start(state: State, { shell, sealed, payload }: Start, out: GenerationEvent[]): void {
  const type = readText(shell['type'])
  state.isForeign = false
  if (type === 'text') {
    startText(state, shell, out)
  } else if (type === 'thinking' || type === 'redacted_thinking') {
    close(state, out, false)
    state.open = { kind: 'reasoning', sealed: sealed ?? '' }
    out.push({ type: 'reasoning-start', block: ++state.block })
    think(state, readText(shell['thinking']), out)
  } else if (type === 'tool_use') {
    startCall(state, shell, { index: Number(payload['index']), out })
  } else {
    startHosted(state, shell, out)
  }
}

/** Texts that follow one another are one: they are divided only by what they cite. */
function startText(state: State, shell: JsonObject, out: GenerationEvent[]): void {
  if (state.open?.kind !== 'text') {
    close(state, out, false)
    state.open = { kind: 'text', citations: createCitations() }
  }
  say(state, readText(shell['text']), out)
}

function startCall(
  state: State,
  shell: JsonObject,
  { index, out }: { index: number; out: GenerationEvent[] },
): void {
  close(state, out, false)
  state.open = { kind: 'call', index, given: readInput(shell['input']), hasDeltas: false }
  const names = { id: readText(shell['id']), name: readText(shell['name']) }
  state.calls.push({ index, indexGiven: true, ...names, text: '' }, out)
}

function startHosted(state: State, shell: JsonObject, out: GenerationEvent[]): void {
  if (state.open?.kind === 'hosted' && state.open.tool.takeResult(shell)) {
    // Its own frames tell nothing more.
    state.isForeign = true
    return
  }
  const tool = isToolUse(readText(shell['type'])) ? createHostedTool(shell) : null
  state.isForeign = tool === null
  if (tool === null) return
  close(state, out, false)
  state.open = { kind: 'hosted', tool }
  out.push({ type: 'hosted-tool-start', block: ++state.block, item: tool.item() })
}

function grow(state: State, delta: JsonObject, out: GenerationEvent[]): void {
  const { open } = state
  switch (delta['type']) {
    case 'text_delta':
      say(state, readText(delta['text']), out)
      break
    case 'citations_delta':
      if (open?.kind === 'text') open.citations.add(delta['citation'])
      break
    case 'thinking_delta':
      think(state, readText(delta['thinking']), out)
      break
    case 'input_json_delta':
      takeInput(state, readText(delta['partial_json']), out)
      break
  }
}

/** A text begins with its first character: servers open one before a call, and say nothing. */
function say(state: State, text: string, out: GenerationEvent[]): void {
  if (text === '' || state.open?.kind !== 'text') return
  const { citations } = state.open
  if (citations.chars() === 0) {
    out.push({ type: 'text-start', block: ++state.block, form: 'answer' })
  }
  citations.passText(text.length)
  out.push({ type: 'text-delta', block: state.block, text })
}

function think(state: State, text: string, out: GenerationEvent[]): void {
  if (text === '' || state.open?.kind !== 'reasoning') return
  out.push({ type: 'reasoning-delta', block: state.block, part: 0, text })
}

function takeInput(state: State, text: string, out: GenerationEvent[]): void {
  const { open } = state
  if (text === '') return
  if (open?.kind === 'call') {
    open.hasDeltas = true
    state.calls.push({ index: open.index, indexGiven: true, id: '', name: '', text }, out)
  } else if (open?.kind === 'hosted') {
    open.tool.takeInput(text)
    if (open.tool.item().type !== 'mcp_call') return
    out.push({ type: 'hosted-tool-delta', block: state.block, text })
  }
}

function stop(state: State, out: GenerationEvent[]): void {
  const { open } = state
  if (open?.kind === 'text') {
    for (const citation of open.citations.take()) {
      out.push({ type: 'citation', block: state.block, citation })
    }
  } else if (open?.kind === 'call' && !open.hasDeltas && open.given !== '') {
    takeInput(state, open.given, out)
  }
}

function close(state: State, out: GenerationEvent[], cut: boolean): void {
  const { open, block } = state
  state.open = null
  switch (open?.kind) {
    case 'text':
      if (open.citations.chars() > 0) out.push({ type: 'text-end', block, complete: !cut })
      break
    case 'reasoning': {
      const { sealed } = open
      const seal = sealed === '' ? {} : { sealed, sealedBy: state.options.maker }
      out.push({ type: 'reasoning-end', block, complete: !cut, ...seal })
      break
    }
    case 'call':
      state.calls.close(out, cut)
      break
    case 'hosted':
      out.push({ type: 'hosted-tool-end', block, item: cut ? null : open.tool.ended() })
      break
  }
}
