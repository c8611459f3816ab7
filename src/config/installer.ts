import { Type } from '@sinclair/typebox'
import { flag, section, text, whole } from './keys.ts'

/** The keys about models that are brought onto this machine. */
export const installerKeys = {
  installer: section('Bringing models onto this machine.', {
    folder: Type.Optional(
      text('Where installed models are kept; without it, the folder models in the data folder.', {
        env: 'SLUICE_MODELS',
      }),
    ),
    hubUrl: Type.String({
      description: 'The model hub, or a mirror of it.',
      default: 'https://huggingface.co',
      pattern: '^https?://[^/@]+(/[^?#]*)?$',
      env: 'SLUICE_HUB_URL',
    }),
    hubToken: Type.Optional(
      text('The credential of the hub; it is sent to the host of hub_url alone.', {
        env: 'SLUICE_HUB_TOKEN',
        secret: true,
      }),
    ),
    hosts: Type.Array(Type.String({ minLength: 1 }), {
      description:
        'Hosts that files may come from, redirects included: "models.example.com", "*.example.com" or "*". Registries are among them.',
      default: [
        ...['huggingface.co', '*.huggingface.co', '*.hf.co'],
        // A registry of models, and where it keeps its blobs.
        ...['registry.ollama.ai', '*.r2.cloudflarestorage.com'],
      ],
    }),
    ports: Type.Array(Type.Integer({ minimum: 1, maximum: 65535 }), {
      description: 'The ports of these hosts; empty: every port.',
      default: [443],
    }),
    privateHosts: flag(
      'Whether these hosts may speak plain http and have addresses that are not public.',
      false,
    ),
    localFolders: Type.Array(Type.String({ minLength: 1 }), {
      description: 'Folders of this machine that models may be copied from.',
      default: [],
    }),
    downloadsMax: whole('Downloads at once in one worker; the others wait.', {
      default: 2,
      minimum: 1,
      maximum: 16,
    }),
    rangesMax: whole('Connections at once for one file.', { default: 4, minimum: 1, maximum: 32 }),
    rangeBytes: whole('What one connection asks for at a time.', {
      default: 67_108_864,
      minimum: 65_536,
    }),
    attemptsMax: whole('Tries in a row that bring nothing, before a file is given up.', {
      default: 10,
      minimum: 1,
      maximum: 1_000,
    }),
    backoffMs: whole('The pause after the first such try; it doubles and is jittered.', {
      default: 500,
      minimum: 1,
    }),
    answerMs: whole('How long a host may take to begin an answer.', {
      default: 30_000,
      minimum: 10,
    }),
    stallMs: whole('How long a connection may bring nothing before it is made anew.', {
      default: 30_000,
      minimum: 10,
    }),
    filesMax: whole('Files of one model.', { default: 1_000, minimum: 1, maximum: 10_000 }),
    fileBytesMax: whole('The longest file.', {
      default: 1_099_511_627_776,
      minimum: 1,
      maximum: 17_592_186_044_416,
    }),
    reserveBytes: whole('What is left free on the disk.', { default: 1_073_741_824, minimum: 0 }),
    logLinesMax: whole('The last lines of the log of a download that are kept.', {
      default: 500,
      minimum: 1,
      maximum: 10_000,
    }),
    keepTerminalS: whole('How long it can be seen how a download ended.', {
      default: 86_400,
      minimum: 0,
      maximum: 31_536_000,
    }),
  }),
}
