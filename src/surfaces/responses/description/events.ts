import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { hostedStages } from '#surfaces/responses/items/hosted-tool.ts'
import { literals } from './content.ts'
import { annotation, logprobs, outputItem, outputPart, summaryPart } from './output-items.ts'
import { responseObject } from './response-object.ts'

/** The events of a stream, by what they carry. */

const sequence = {
  sequence_number: Type.Integer({ description: 'Counts the events of the response, from 0.' }),
}

const event = ($id: string, types: readonly string[], fields: TProperties) =>
  Type.Object({ type: literals(types, 'Which event it is.'), ...sequence, ...fields }, { $id })

const under = (stem: string, ...ends: readonly string[]) =>
  ends.map((end) => `response.${stem}${end}`)

const outputIndex = { output_index: Type.Integer({ description: 'The place of the item.' }) }
const ofItem = { item_id: Type.String(), ...outputIndex }
const ofPart = { ...ofItem, content_index: Type.Integer({ description: 'The place of the part.' }) }
const ofSummary = {
  ...ofItem,
  summary_index: Type.Integer({ description: 'The place of the part of the summary.' }),
}
const delta = { delta: Type.String({ description: 'What follows.' }) }
const whole = (what: string) => Type.String({ description: `The whole ${what}.` })

const lifecycle = event(
  'ResponseStateEvent',
  under('', 'created', 'queued', 'in_progress', 'completed', 'incomplete', 'failed'),
  { response: responseObject },
)

const cited = event('AnnotationEvent', under('output_text.annotation.', 'added'), {
  ...ofPart,
  annotation_index: Type.Integer(),
  annotation,
})

const jsonArguments = ['function_call_arguments', 'mcp_call_arguments']
const failure = {
  code: Type.String(),
  message: Type.String(),
  param: Type.Union([Type.String(), Type.Null()]),
}

const variants: readonly TSchema[] = [
  lifecycle,
  event('OutputItemEvent', under('output_item.', 'added', 'done'), {
    ...outputIndex,
    item: outputItem,
  }),
  event('ContentPartEvent', under('content_part.', 'added', 'done'), {
    ...ofPart,
    part: outputPart,
  }),
  event('TextDeltaEvent', under('output_text.', 'delta'), { ...ofPart, ...delta, logprobs }),
  event('TextDoneEvent', under('output_text.', 'done'), {
    ...ofPart,
    text: whole('text'),
    logprobs,
  }),
  cited,
  event('RefusalDeltaEvent', under('refusal.', 'delta'), { ...ofPart, ...delta }),
  event('RefusalDoneEvent', under('refusal.', 'done'), { ...ofPart, refusal: whole('refusal') }),
  event('SummaryPartEvent', under('reasoning_summary_part.', 'added', 'done'), {
    ...ofSummary,
    part: summaryPart,
  }),
  event('SummaryDeltaEvent', under('reasoning_summary_text.', 'delta'), {
    ...ofSummary,
    ...delta,
  }),
  event('SummaryDoneEvent', under('reasoning_summary_text.', 'done'), {
    ...ofSummary,
    text: whole('part'),
  }),
  event(
    'ArgumentsDeltaEvent',
    [...jsonArguments, 'custom_tool_call_input'].flatMap((stem) => under(stem, '.delta')),
    { ...ofItem, ...delta },
  ),
  event(
    'ArgumentsDoneEvent',
    jsonArguments.flatMap((stem) => under(stem, '.done')),
    { ...ofItem, arguments: whole('JSON') },
  ),
  event('CustomInputDoneEvent', under('custom_tool_call_input', '.done'), {
    ...ofItem,
    input: whole('input'),
  }),
  event(
    'ToolProgressEvent',
    Object.entries(hostedStages).flatMap(([type, ends]) => under(`${type}.`, ...ends)),
    ofItem,
  ),
  event('StreamErrorEvent', ['error'], {
    ...failure,
    error: Type.Object({ type: Type.String(), ...failure }),
  }),
]

export const streamEvent = Type.Union([...variants], { $id: 'ResponseStreamEvent' })

/** What stands in the description of each route that streams. */
export const aboutEvents = `The answer is \`text/event-stream\`: each event has its type as \`event:\` and its JSON as \`data:\`, and
\`data: [DONE]\` comes last. \`sequence_number\` counts from 0 without gaps.

| Events | When |
|---|---|
| \`response.created\`, \`response.queued\`, \`response.in_progress\` | At the beginning; \`queued\` in the background only. |
| \`response.in_progress\` again | As a sign of life while nothing else comes, with what there is so far. |
| \`response.output_item.added\` … \`.done\` | Around each item; items never overlap. |
| \`response.content_part.added\` … \`.done\` | Around the part of a message. |
| \`response.output_text.delta\`, \`.done\`, \`.annotation.added\` | The text, and what it cites. |
| \`response.refusal.delta\`, \`.done\` | In place of text. |
| \`response.reasoning_summary_part.added\`, \`.done\`, \`response.reasoning_summary_text.delta\`, \`.done\` | Thoughts. |
| \`response.function_call_arguments.delta\`, \`.done\` | Arguments of a function; \`response.mcp_call_arguments.*\` of a tool of a server. |
| \`response.custom_tool_call_input.delta\`, \`.done\` | Input of a custom tool. |
| \`response.mcp_list_tools.*\`, \`response.mcp_call.*\`, \`response.file_search_call.*\`, \`response.web_search_call.*\`, \`response.code_interpreter_call.*\`, \`response.image_generation_call.*\` | Tools that run on this side of the caller. |
| \`response.completed\`, \`response.incomplete\`, \`response.failed\` | The end, with the whole response. A response that was cancelled ends with \`response.incomplete\` and the status \`cancelled\`. |
| \`error\` | Right before \`response.failed\`. |

A failure before the first event is an HTTP status. A reader that takes nothing is cut off in time.`
