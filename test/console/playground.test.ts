import { afterAll, describe, expect, test } from 'bun:test'
import { isBrowserMissing } from '#test/support/browser.ts'
import { useConsole } from '#test/support/console.ts'
import { startReplayUpstream } from '#test/support/replay-upstream.ts'
import { wavFile } from '../speech/decoders/wav-builder.ts'

const voices = await startReplayUpstream(() => ({ body: '{"data":[]}' }))
afterAll(() => voices.stop())

/** Half a second of sound, whose length the header does not say. */
const sound = wavFile(new Uint8Array(24_000), { rateHz: 24_000, dataSize: 0xffffffff })

describe.skipIf(isBrowserMissing)('the playground in a browser (needs chromium)', () => {
  const { open: openPage } = useConsole({
    upstream: [
      { name: 'demo', api: 'demo' },
      { name: 'voices', url: voices.baseUrl, api: 'chat', models: [] },
    ],
    model: [{ name: 'kokoro', mode: 'speak', upstreams: ['voices'] }],
  })

  const answer = `[...document.querySelectorAll('.answer')].at(-1)?.innerText ?? ''`
  const openPlayground = async () => {
    const opened = await openPage()
    await opened.open('/playground', 'Playground')
    const ask = async (text: string) => {
      await opened.fill('Message', text)
      await opened.page.keyboard.press('Enter')
    }
    const answers = async (text: string) => {
      await opened.page.waitForFunction(`(${answer}).includes(${JSON.stringify(text)})`)
    }
    const selectModel = (model: string) => opened.choose('Model or agent', model)
    return { ...opened, ask, answers, selectModel }
  }

  test.each(['Responses', 'Messages'])(
    'over %s an answer streams with reasoning, and the conversation continues',
    async (surface) => {
      const { page, faults, press, ask, answers, selectModel, shows, expectAccessible } =
        await openPlayground()
      await selectModel('demo-reasoning')
      await press(surface)
      // Two answers are higher.
      await page.evaluate(`document.querySelector('main').style.maxHeight = '400px'`)
      await ask('What is a weir?')
      await answers('Reasoning')
      await answers('You said: What is a weir?')
      await answers('tokens/s')
      await answers('first token')
      await ask('And a lock?')
      await answers('You said: And a lock?')
      await answers('Ask again')
      // The end of the answer stayed in view.
      await page.waitForFunction(`(({ scrollHeight, scrollTop, clientHeight }) =>
        scrollTop > 0 && scrollHeight - scrollTop - clientHeight < 2)(document.querySelector('main'))`)
      await press('Events and code')
      await shows(surface === 'Responses' ? 'response.created' : 'message_start')
      await page.click('.events summary')
      await shows(surface === 'Responses' ? '"sequence_number": 0' : '"type": "message_start"')
      const programs = {
        Responses: {
          curl: '/v1/responses',
          'OpenAI · Python': 'import OpenAI',
          'OpenAI · Node': 'new OpenAI(',
          LangChain: 'use_responses_api=True',
          Codex: "--model 'demo-reasoning'",
        },
        Messages: {
          curl: '/compat/v1/messages',
          'Anthropic · Python': 'import Anthropic',
          'Anthropic · Node': 'new Anthropic(',
          'Claude Code': "--model 'demo-reasoning'",
        },
      }[surface]
      for (const [client, line] of Object.entries(programs ?? {})) {
        await press(client)
        await shows(line)
      }
      await expectAccessible()
      expect(faults).toEqual([])
      await page.close()
    },
  )

  test.each(['Responses', 'Messages'])(
    'over %s a tool call shows its arguments, and goes on with the result',
    async (surface) => {
      const { page, faults, press, fill, ask, answers, selectModel } = await openPlayground()
      await selectModel('demo-tools')
      await press(surface)
      await page.evaluate(
        `[...document.querySelectorAll('summary')].find((one) => one.textContent === 'Tools').click()`,
      )
      await press('Insert an example')
      await ask('How is the weather?')
      await answers('get_weather')
      await fill('Result of get_weather', '21 degrees')
      await press('Send the result')
      await answers('21 degrees')
      expect(faults).toEqual([])
      await page.close()
    },
  )

  test('a stored answer continues after a reload of the page', async () => {
    const { page, faults, ask, answers, selectModel } = await openPlayground()
    await selectModel('demo-long')
    await ask('Tell a long story')
    await answers('demo-long')
    await page.waitForFunction(`(${answer}).includes('1 2 3 4')`)
    await page.reload({ waitUntil: 'domcontentloaded' })
    await answers('Resumed after a reload')
    // The beginning again, and what followed.
    await page.waitForFunction(`/1 2 3 4 [\\d ]*1[0-9] /.test(${answer})`)
    await page.evaluate(
      `[...document.querySelectorAll('button')].find((one) => one.textContent === 'Stop').click()`,
    )
    await answers('stopped')
    expect(faults).toEqual([])
    await page.close()
  })

  test('a failure says what happened', async () => {
    const { page, ask, answers, press, selectModel, expectAccessible } = await openPlayground()
    await selectModel('demo-fail')
    await ask('Hello')
    await answers('upstream_error')
    await answers('The models page shows its state.')
    await expectAccessible()
    const asked = page.waitForRequest((request) => request.method() === 'POST')
    await press('Try again')
    expect((await asked).url()).toEndWith('/v1/responses')
    await answers('upstream_error')
    await page.close()
  })

  test('an answer is shown as Markdown, and spoken as its words until it is stopped', async () => {
    const spoken = () => voices.requests.filter(({ path }) => path.endsWith('/audio/speech'))
    const { page, faults, open, press, fill, answers, selectModel, shows, expectAccessible } =
      await openPlayground()
    await selectModel('demo-fast')
    await fill('Message', 'Read **this**')
    await page.keyboard.down('Shift')
    const table = ['| Gate | Width |', '|---|---|', '| lower | 6 m |']
    const code = ['```js', '1', '```']
    for (const line of ['', ...table, '## Both', ...code, ...code, '']) {
      await page.keyboard.press('Enter')
      await page.keyboard.type(line)
    }
    await page.keyboard.up('Shift')
    await page.keyboard.press('Enter')
    await answers('Ask again')
    expect(await page.$eval('.answer table', (table) => table.textContent)).toContain('lower6 m')
    expect(await page.$eval('.answer strong', (strong) => strong.textContent)).toBe('this')

    const headers = { 'content-type': 'audio/wav' }
    voices.answer({ headers, body: sound, ending: 'hang' })
    await press('Speak')
    await answers('Stop speaking')
    await voices.until(() => spoken().length === 1)
    expect(JSON.parse(spoken()[0]?.body ?? '')).toEqual({
      model: 'kokoro',
      voice: 'alloy',
      response_format: 'wav',
      input: expect.stringMatching(
        /^You said: Read this\.\s+Gate, Width\.\s+lower, 6 m\.\s+Both\W+I am a/,
      ),
    })
    await expectAccessible()
    await press('Stop speaking')
    await voices.until(({ connections }) => connections.aborted === 1)
    await answers('Ask again')

    voices.answer({ headers, body: sound, cutsAt: [100, 9_001] })
    await open('/models', 'Models')
    await shows('kokoro')
    await expectAccessible()
    await open('/speech', 'Live speech')
    await press('Text to speech')
    await fill('Voice name', 'heart')
    await press('Speak')
    await shows('Ended')
    await page.waitForFunction(`/First sound\\s+[\\d.]+ m?s/.test(document.body.innerText) &&
      document.body.innerText.includes('500 ms')`)
    expect(JSON.parse(spoken()[1]?.body ?? '')).toMatchObject({ voice: 'heart' })
    await expectAccessible()
    voices.answer({ status: 400, body: '{"error":{"message":"No such voice."}}' })
    await press('Speak')
    await shows('No such voice.')
    expect(faults).toEqual([expect.stringContaining('400')])
    await page.close()
  })

  test('an image and a file are sent with the question, and the answer has the form of a schema', async () => {
    const { page, press, upload, ask, answers } = await openPlayground()
    await press('Structured output')
    await press('Insert an example')
    const files = ['icon.svg', 'index.html'].map(
      (name) => new URL(`../../console/src/${name}`, import.meta.url).pathname,
    )
    await upload('.composer input[type=file]', ...files)
    await page.waitForSelector('.attachments li:nth-child(2)')
    const sent = page.waitForRequest((request) => request.url().endsWith('/v1/responses'))
    await ask('What is this?')
    const body = (await sent).postData()
    expect(body).toContain('data:image/svg+xml;base64,')
    expect(body).toContain('"filename":"index.html","file_data":"data:text/html;base64,')
    await answers('"tags": [')
    await page.close()
  })
})
