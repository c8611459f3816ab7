import { describe, expect, test } from 'bun:test'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isBrowserMissing } from '#test/support/browser.ts'
import { type ConsoleVisit, useConsole } from '#test/support/console.ts'
import { wavFile } from '../speech/decoders/wav-builder.ts'

const sampleRateHz = 48_000
const recording = join(mkdtempSync(join(tmpdir(), 'sluice-voice-')), 'voice.wav')
writeFileSync(recording, voiceFile())

/** Chromium plays the file again and again. */
const microphone = [
  '--use-fake-device-for-media-stream',
  `--use-file-for-fake-audio-capture=${recording}`,
]

/** Notes the engines that files are sent to. */
const noteModels = `{
  window.models = []
  const { send } = XMLHttpRequest.prototype
  XMLHttpRequest.prototype.send = function (form) {
    models.push(form.get('model'))
    return send.call(this, form)
  }
}`

describe.skipIf(isBrowserMissing)('live speech in a browser (needs chromium)', () => {
  const { site, open: openPage } = useConsole({}, microphone)

  const openSpeech = async (permissions: readonly 'microphone'[]) => {
    const visited = await openPage()
    await visited.page.browserContext().overridePermissions(site.gateway.url, [...permissions])
    await visited.open('/speech', 'Live speech')
    return visited
  }
  const transcript = `document.querySelector('.transcript')?.innerText ?? ''`
  const saved = async ({ page, press }: ConsoleVisit, button: string) => {
    await page.evaluate(`{
      const create = URL.createObjectURL
      URL.createObjectURL = (file) => {
        file.text().then((text) => { window.saved = text })
        return create.call(URL, file)
      }
    }`)
    await press(button)
    await page.waitForFunction('window.saved !== undefined')
    return String(await page.evaluate('window.saved'))
  }

  test('speech becomes text while it is spoken, with pauses, a ledger and captions', async () => {
    const visited = await openSpeech(['microphone'])
    const { page, faults, press, shows, expectAccessible } = visited
    await shows('The demo engine recognises no words.')
    await press('Start recording')
    await page.waitForFunction(`(${transcript}).includes('[speech')`)
    await page.waitForFunction(`document.querySelector('.figures td').innerText !== '–'`)
    await press('Pause')
    await shows('Paused')
    await press('Resume')
    await shows('Recording')
    await press('Stop')
    await shows('Ready')
    await shows('Transcribed')
    await page.waitForFunction(`/Omitted\\s+0 s/.test(document.body.innerText)`)
    expect(await saved(visited, 'Save as VTT')).toMatch(
      /^WEBVTT\n\n00:00:\d\d\.\d{3} --> 00:00:\d\d\.\d{3}\n\[speech/,
    )
    await expectAccessible()

    await page.evaluate(noteModels)
    await visited.choose('Engine for the file', 'demo (no words)')
    await visited.upload('input[type=file]', recording)
    await shows('voice.wav is transcribed')
    await page.waitForFunction(`(${transcript}).split('[speech').length === 3`)
    expect(await page.evaluate('window.models')).toEqual(['demo (no words)'])
    expect(faults).toEqual([])
    await page.close()
  })

  test('a denied microphone leads to an explanation, and the page stays usable', async () => {
    const { page, press, shows, expectAccessible } = await openSpeech([])
    await press('Start recording')
    await shows('This page may not use the microphone.')
    await shows('Ready')
    await expectAccessible()
    await page.close()
  })
})

/** Two sounds like syllables, each with a pause after it. */
function voiceFile(): Uint8Array {
  const seconds = 5
  const samples = Int16Array.from({ length: seconds * sampleRateHz }, (_, index) => {
    const second = index / sampleRateHz
    const isSpoken = second % 2.5 > 0.5 && second % 2.5 < 1.5
    const syllable = 0.5 - 0.5 * Math.cos(2 * Math.PI * 4 * second)
    const voice = [150, 300, 450, 900, 1_350].reduce(
      (sum, hz) => sum + Math.sin(2 * Math.PI * hz * second),
      0,
    )
    return isSpoken ? Math.round(4_000 * syllable * voice) : 0
  })
  return wavFile(new Uint8Array(samples.buffer), { rateHz: sampleRateHz })
}
