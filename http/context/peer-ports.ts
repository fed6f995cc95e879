/** The ports of the readers for peers, as the main thread sees them: it opens and closes them, judges who calls, and has peers told where they are. */

import { MessageChannel, type MessagePort } from 'node:worker_threads';
import type { PeerTls } from '../../cluster/transport/entrance.js';
import type { ListeningTransport } from '../../cluster/transport/open.js';
import type { FromPeerPort, PeerPortSettings, ToPeerPort } from './peer-port.js';
import type { DoorThreads } from './reader-servers.js';
import { ThreadChannels } from './thread-channels.js';

export class PeerPorts {
  readonly #channels = new ThreadChannels<ToPeerPort>();
  /** By reader: one that takes the place of another keeps its port. */
  readonly #numbers = new Map<number, number>();

  constructor(
    private readonly threads: Pick<DoorThreads<PeerPortSettings>, 'openDoors'>,
    private readonly host: string,
    private readonly transport: Pick<ListeningTransport, 'admits' | 'entrance' | 'tellReaderPorts'>,
  ) {}

  /** Any free ports. A reader that gets none is asked through the main thread, as without all this. */
  open(): void {
    this.threads.openDoors((reader) => {
      const { port1, port2 } = new MessageChannel();
      this.#take(reader, port1);
      return { port: port2, settings: { host: this.host, number: this.#numbers.get(reader) ?? 0, entrance: this.transport.entrance } };
    });
  }

  /** Certificates for connections from now on. */
  renew(tls: PeerTls): void {
    this.#channels.tell({ kind: 'renew', tls });
  }

  /** Resolves when every reader has ended its streams with peers. */
  async close(): Promise<void> {
    const ended = this.#channels.ended();
    this.#channels.tell({ kind: 'close' });
    await ended;
  }

  #take(reader: number, channel: MessagePort): void {
    this.#channels.add(channel);
    channel.on('message', (message: FromPeerPort) => {
      switch (message.kind) {
        case 'listening':
          this.#numbers.set(reader, message.number);
          this.#tellPeers();
          return;
        case 'failed':
          if (this.#numbers.delete(reader)) this.#tellPeers();
          return;
        case 'hello':
          channel.postMessage({
            kind: 'judged',
            id: message.id,
            isAdmitted: this.transport.admits(message.hello, message.certificate),
          } satisfies ToPeerPort);
          return;
        case 'closed':
          channel.close();
          return;
        default:
          message satisfies never;
      }
    });
  }

  #tellPeers(): void {
    const byReader = [...this.#numbers].sort(([one], [other]) => one - other);
    this.transport.tellReaderPorts(byReader.map(([, number]) => number));
  }
}
