/** The programs on the pages about the appliances are run, as they stand there. */
import { startFake as startCitrix } from 'drainable/testing/citrix-adc'
import { startFake as startBigip } from 'drainable/testing/f5-bigip'
import { describe, expect, it } from 'vitest'
import { PagePrograms, quoted, tlsOf } from '../support/page-programs.js'

const programs = new PagePrograms((path) => /adapters\/(f5|citrix)/.test(path))

describe('the programs on the pages', () => {
  it.concurrent('docs/adapters/f5-bigip.md 1', async () => {
    await using fake = await startBigip({
      pair: true,
      pools: { web: ['10.0.0.1:80', '10.0.0.2:80'] },
      username: 'drainer',
    })
    await programs.run('docs/adapters/f5-bigip.md 1', {
      "['https://bigip1.example', 'https://bigip2.example']": quoted(fake.urls),
      "process.env['BIGIP_PASSWORD'] ?? ''": quoted(fake.password),
      "{ ca: '/etc/ssl/corp.pem' }": tlsOf(fake.ca),
    })
    expect(fake.state({ pool: 'web', member: '10.0.0.1:80' })).toBe('ready')
  })

  it.concurrent('docs/adapters/citrix-adc.md 1', async () => {
    await using fake = await startCitrix({
      ha: true,
      pools: { sg_web: ['10.0.1.1:80', '10.0.1.2:80'] },
      username: 'drainer',
    })
    await programs.run('docs/adapters/citrix-adc.md 1', {
      "['https://10.0.0.11', 'https://10.0.0.12']": quoted(fake.urls),
      "process.env['ADC_PASSWORD'] ?? ''": quoted(fake.password),
      "{ ca: '/etc/ssl/adc.pem' }": tlsOf(fake.ca),
    })
    expect(fake.look({ pool: 'sg_web', member: '10.0.1.1:80' }).enabled).toBe(true)
  })

  it.concurrent('docs/adapters/citrix-adc.md 2', async () => {
    await using fake = await startCitrix({
      pools: { sg_web: ['10.0.1.1:80', '10.0.1.2:80'] },
      username: 'drainer',
      password: 'secret',
    })
    await programs.run('docs/adapters/citrix-adc.md 2', {
      "'https://10.0.0.11'": `${quoted(fake.url)}, tls: ${tlsOf(fake.ca)}`,
    })
    expect(programs.said.filter((line) => line.startsWith('sg_web 10.0.1.1:80'))).toHaveLength(1)
  })
})
