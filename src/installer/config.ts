import { type Static, Type } from '@sinclair/typebox'
import { flag, section, text, whole } from '#config/keys.ts'

/** The keys about models that are brought onto this machine. */
export const installerKeys = {
  installer: section('Downloading models to this machine.', {
    folder: Type.Optional(
      text('Folder of installed models. Default: the folder models in the data folder.', {
        env: 'SLUICE_MODELS',
      }),
    ),
    hubUrl: Type.String({
      description: 'URL of the model hub, or of a mirror.',
      default: 'https://huggingface.co',
      pattern: '^https?://[^/@]+(/[^?#]*)?$',
      env: 'SLUICE_HUB_URL',
    }),
    hubToken: Type.Optional(
      text('Credential of the hub, sent only to the host of hub_url.', {
        env: 'SLUICE_HUB_TOKEN',
        secret: true,
      }),
    ),
    hosts: Type.Array(Type.String({ minLength: 1 }), {
      description:
        'Hosts that models may be downloaded from, including redirects and registries: "models.example.com", "*.example.com" or "*".',
      default: [
        ...['huggingface.co', '*.huggingface.co', '*.hf.co'],
        // A registry of models, and where it keeps its blobs.
        ...['registry.ollama.ai', '*.r2.cloudflarestorage.com'],
      ],
    }),
    ports: Type.Array(Type.Integer({ minimum: 1, maximum: 65535 }), {
      description: 'Allowed ports of these hosts; empty: any.',
      default: [443],
    }),
    privateHosts: flag('Whether these hosts may use http and private addresses.', false),
    localFolders: Type.Array(Type.String({ minLength: 1 }), {
      description: 'Local folders that models may be copied from.',
      default: [],
    }),
    downloadsMax: whole('Concurrent downloads per worker; others wait.', {
      default: 2,
      minimum: 1,
      maximum: 16,
    }),
    rangesMax: whole('Concurrent connections per file.', { default: 4, minimum: 1, maximum: 32 }),
    rangeBytes: whole('Size of one range request.', {
      default: 67_108_864,
      minimum: 65_536,
    }),
    attemptsMax: whole('Consecutive attempts without progress before a file fails.', {
      default: 10,
      minimum: 1,
      maximum: 1_000,
    }),
    backoffMs: whole('Pause after the first such attempt; it doubles, with jitter.', {
      default: 500,
      minimum: 1,
    }),
    answerMs: whole('Timeout until the response headers of a host.', {
      default: 30_000,
      minimum: 10,
    }),
    stallMs: whole('Time without data after which a connection is reopened.', {
      default: 30_000,
      minimum: 10,
    }),
    filesMax: whole('Maximum files per model.', { default: 1_000, minimum: 1, maximum: 10_000 }),
    fileBytesMax: whole('Maximum file size.', {
      default: 1_099_511_627_776,
      minimum: 1,
      maximum: 17_592_186_044_416,
    }),
    reserveBytes: whole('Disk space that must remain free.', {
      default: 1_073_741_824,
      minimum: 0,
    }),
    logLinesMax: whole('Log lines kept per download.', {
      default: 500,
      minimum: 1,
      maximum: 10_000,
    }),
    keepTerminalS: whole('How long finished downloads remain listed.', {
      default: 86_400,
      minimum: 0,
      maximum: 31_536_000,
    }),
  }),
}

export type InstallerSettings = Readonly<Static<typeof installerKeys.installer>>
