import { Type } from '@sinclair/typebox'
import { eventStream, form, operation } from '#docs/operation.ts'
import {
  type Transcription,
  transcription,
  transcriptionEvent,
  verboseTranscription,
} from './answer-schema.ts'
import { transcriptionForm } from './read-request.ts'

const example: Transcription = {
  text: 'good morning',
  usage: { type: 'duration', seconds: 1.6 },
}
const text = (sample: string) => ({ schema: Type.String(), example: sample })

const streamed = [
  { type: 'transcript.text.delta', delta: 'good morning' },
  { type: 'transcript.text.done', ...example },
]

export const transcriptionOperation = operation({
  tag: 'Speech',
  summary: 'Transcribe a file',
  description: [
    'A file of any length goes in, as far as the configuration allows, and is never held in memory. The',
    'format is told by its bytes. With `stream=true` finals come as they are made, as events without',
    'names: `transcript.text.delta` and, with `verbose_json`, `transcript.text.segment`; then',
    '`transcript.text.done`, or `error`; last `[DONE]`. Where an engine was lost together with speech',
    'that it had heard, the request fails with `audio_lost`, except with `verbose_json`, which tells',
    'what is missing.',
  ].join(' '),
  body: { content: form(transcriptionForm) },
  answers: {
    200: {
      description: 'The text, in the form that was asked for.',
      content: {
        'application/json': {
          schema: Type.Union([transcription, verboseTranscription]),
          example,
        },
        'text/plain': text('good morning\n'),
        'application/x-subrip': text('1\n00:00:00,420 --> 00:00:01,180\ngood morning\n\n'),
        'text/vtt': text('WEBVTT\n\n00:00:00.420 --> 00:00:01.180\ngood morning\n\n'),
        ...eventStream(
          transcriptionEvent,
          `${streamed.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`,
        ),
      },
      headers: {
        'x-untranscribed-ms': 'Milliseconds of speech that were lost with their engine, if any.',
      },
    },
  },
  errors: {
    invalid_request: [
      'Send the audio as a file in the field "file".',
      {
        code: 'unsupported_language',
        message: 'This language is not supported; there are cs, de, el, en, fr, sk.',
      },
      {
        code: 'unsupported_file_format',
        message:
          'The format of the file cannot be told by its first bytes. Send WAV, MP3, or Opus in Ogg or WebM.',
      },
      { code: 'bad_audio', message: 'There is no audio in the file.' },
    ],
    model_not_found: 'The model "whisper-9" does not exist.',
    request_timeout: 'The request body did not come in time.',
    request_too_large: { code: 'file_too_large', message: 'A file may have 209715200 bytes.' },
    rate_limit_exceeded: 'One caller may have 100 files transcribed at once.',
    upstream_error: [
      { code: 'engine_failed', message: 'No speech engine can do this file now.' },
      {
        code: 'audio_lost',
        message:
          'The speech from 12.3 s to 15 s was lost with its engine. With response_format=verbose_json the rest is told, and what is missing.',
      },
    ],
    service_unavailable: [
      { code: 'engine_busy', message: 'All speech engines are busy; try again.' },
      { code: 'capacity', message: 'There is no room for another file; try again.' },
    ],
    upstream_gap_timeout: [
      {
        code: 'engine_stalled',
        message: 'The speech engine made no progress for too long.',
      },
      {
        code: 'finalize_timeout',
        message: 'The last results of the speech engine did not come in time.',
      },
    ],
    upstream_total_timeout: {
      code: 'transcription_timeout',
      message: 'The file was not done within 600000 ms.',
    },
    insufficient_storage: 'There is no room for this file.',
  },
})
