import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { oneOf } from '#api/request-schema.ts'
import { hostedStages } from '#surfaces/responses/items/hosted-tool.ts'
import { annotation, logprobs, outputItem, outputPart, summaryPart } from './output-items.ts'
import { responseObject } from './response-object.ts'

/** The events of a response stream. */

const sequence = {
  sequence_number: Type.Integer({
    description: 'The number of the event within the response, from 0.',
  }),
  stream_id: Type.Optional(
    Type.String({ description: 'Over a WebSocket only: the `stream_id` of the request.' }),
  ),
}

const event = ($id: string, types: readonly string[], fields: TProperties) =>
  Type.Object({ type: oneOf(types, 'The type of the event.'), ...sequence, ...fields }, { $id })

const eventTypes = (stem: string, ...ends: readonly string[]) =>
  ends.map((end) => `response.${stem}${end}`)

const outputIndex = { output_index: Type.Integer({ description: 'The index of the item.' }) }
const ofItem = { item_id: Type.String(), ...outputIndex }
const ofPart = { ...ofItem, content_index: Type.Integer({ description: 'The index of the part.' }) }
const ofSummary = {
  ...ofItem,
  summary_index: Type.Integer({ description: 'The index of the summary part.' }),
}
const optionalTexts = (...names: string[]) =>
  Object.fromEntries(names.map((name) => [name, Type.Optional(Type.String())]))
const ofCommand = {
  ...outputIndex,
  command_index: Type.Integer({ description: 'The index of the command in its call.' }),
}
const delta = { delta: Type.String({ description: 'The text to append.' }) }
const complete = (what: string) => Type.String({ description: `The complete ${what}.` })

const lifecycle = event(
  'ResponseStateEvent',
  eventTypes('', 'created', 'queued', 'in_progress', 'completed', 'incomplete', 'failed'),
  {
    response: responseObject,
    warning: Type.Optional(
      Type.Object(
        { code: Type.String(), message: Type.String() },
        {
          description:
            '`response_not_stored`: in the last event of a response that could not be stored.',
        },
      ),
    ),
  },
)

const cited = event('AnnotationEvent', eventTypes('output_text.annotation.', 'added'), {
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
  event('OutputItemEvent', eventTypes('output_item.', 'added', 'done'), {
    ...outputIndex,
    item: outputItem,
  }),
  event('ContentPartEvent', eventTypes('content_part.', 'added', 'done'), {
    ...ofPart,
    part: outputPart,
  }),
  event('TextDeltaEvent', eventTypes('output_text.', 'delta'), { ...ofPart, ...delta, logprobs }),
  event('TextDoneEvent', eventTypes('output_text.', 'done'), {
    ...ofPart,
    text: complete('text'),
    logprobs,
  }),
  cited,
  event('RefusalDeltaEvent', eventTypes('refusal.', 'delta'), { ...ofPart, ...delta }),
  event('RefusalDoneEvent', eventTypes('refusal.', 'done'), {
    ...ofPart,
    refusal: complete('refusal'),
  }),
  event('SummaryPartEvent', eventTypes('reasoning_summary_part.', 'added', 'done'), {
    ...ofSummary,
    part: summaryPart,
  }),
  event('SummaryDeltaEvent', eventTypes('reasoning_summary_text.', 'delta'), {
    ...ofSummary,
    ...delta,
  }),
  event('SummaryDoneEvent', eventTypes('reasoning_summary_text.', 'done'), {
    ...ofSummary,
    text: complete('part'),
  }),
  event(
    'ArgumentsDeltaEvent',
    [...jsonArguments, 'custom_tool_call_input', 'code_interpreter_call_code'].flatMap((stem) =>
      eventTypes(stem, '.delta'),
    ),
    { ...ofItem, ...delta },
  ),
  event(
    'ArgumentsDoneEvent',
    jsonArguments.flatMap((stem) => eventTypes(stem, '.done')),
    { ...ofItem, arguments: complete('JSON') },
  ),
  event('CustomInputDoneEvent', eventTypes('custom_tool_call_input', '.done'), {
    ...ofItem,
    input: complete('input'),
  }),
  event('CodeDoneEvent', eventTypes('code_interpreter_call_code', '.done'), {
    ...ofItem,
    code: complete('code'),
  }),
  event('PartialImageEvent', eventTypes('image_generation_call.', 'partial_image'), {
    ...ofItem,
    partial_image_b64: Type.String(),
    partial_image_index: Type.Integer(),
    ...optionalTexts('size', 'quality', 'background', 'output_format'),
  }),
  event('ShellCommandEvent', eventTypes('shell_call_command.', 'added', 'done'), {
    ...ofCommand,
    command: complete('command'),
  }),
  event('ShellCommandDeltaEvent', eventTypes('shell_call_command.', 'delta'), {
    ...ofCommand,
    ...delta,
  }),
  event('ShellOutputDeltaEvent', eventTypes('shell_call_output_content.', 'delta'), {
    ...ofItem,
    ...ofCommand,
    delta: Type.Object({
      stdout: Type.Optional(Type.String()),
      stderr: Type.Optional(Type.String()),
    }),
  }),
  event('ShellOutputDoneEvent', eventTypes('shell_call_output_content.', 'done'), {
    ...ofItem,
    ...ofCommand,
    output: Type.Array(Type.Object({}), { description: 'The complete output of the command.' }),
  }),
  event(
    'ToolProgressEvent',
    Object.entries(hostedStages).flatMap(([type, ends]) => eventTypes(`${type}.`, ...ends)),
    ofItem,
  ),
  event('StreamErrorEvent', ['error'], {
    ...failure,
    error: Type.Object({ type: Type.String(), ...failure }),
  }),
]

export const streamEvent = Type.Union([...variants], { $id: 'ResponseStreamEvent' })

/** Part of the description of every endpoint that streams events. */
export const eventsDescription = `The stream is \`text/event-stream\`: each event has its type as \`event:\` and its JSON as \`data:\`, followed
by a final \`data: [DONE]\`. \`sequence_number\` counts from 0 without gaps.

| Events | When |
|---|---|
| \`response.created\`, \`response.queued\`, \`response.in_progress\` | At the beginning; \`queued\` for background responses only. |
| \`response.in_progress\` again | Heartbeat while there are no other events, with the output so far. |
| \`response.output_item.added\` … \`.done\` | Around each item; items never overlap. |
| \`response.content_part.added\` … \`.done\` | Around the part of a message. |
| \`response.output_text.delta\`, \`.done\`, \`.annotation.added\` | The text and its citations. |
| \`response.refusal.delta\`, \`.done\` | Instead of text. |
| \`response.reasoning_summary_part.added\`, \`.done\`, \`response.reasoning_summary_text.delta\`, \`.done\` | Reasoning. |
| \`response.function_call_arguments.delta\`, \`.done\` | Arguments of a function call; \`response.mcp_call_arguments.*\` for MCP tools. |
| \`response.custom_tool_call_input.delta\`, \`.done\` | Input of a custom tool. |
| \`response.mcp_list_tools.*\`, \`response.mcp_call.*\`, \`response.file_search_call.*\`, \`response.web_search_call.*\`, \`response.code_interpreter_call.*\`, \`response.image_generation_call.*\` | Progress of tools that the gateway or the upstream runs. |
| \`response.code_interpreter_call_code.*\`, \`response.image_generation_call.partial_image\`, \`response.shell_call_command.*\`, \`response.shell_call_output_content.*\` | Code, images and commands of tools that the upstream runs. |
| \`response.completed\`, \`response.incomplete\`, \`response.failed\` | The end, with the complete response. A cancelled response ends with \`response.incomplete\` and the status \`cancelled\`. |
| \`error\` | Immediately before \`response.failed\`. |

A failure before the first event is an HTTP error status. Clients that stop reading are disconnected.`
