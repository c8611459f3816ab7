CREATE TABLE "usage_batch" (
	"id" uuid PRIMARY KEY NOT NULL,
	"first_id" uuid NOT NULL,
	"last_id" uuid NOT NULL,
	"records" integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE "usage_hour" (
	"hour" timestamp with time zone NOT NULL,
	"user_id" uuid DEFAULT '00000000-0000-0000-0000-000000000000' NOT NULL,
	"key_id" uuid DEFAULT '00000000-0000-0000-0000-000000000000' NOT NULL,
	"agent_id" uuid DEFAULT '00000000-0000-0000-0000-000000000000' NOT NULL,
	"model" text NOT NULL,
	"upstream" text NOT NULL,
	"kind" text NOT NULL,
	"outcome" text NOT NULL,
	"requests" bigint DEFAULT 0 NOT NULL,
	"estimated" bigint DEFAULT 0 NOT NULL,
	"retries" bigint DEFAULT 0 NOT NULL,
	"input_tokens" bigint DEFAULT 0 NOT NULL,
	"cached_tokens" bigint DEFAULT 0 NOT NULL,
	"cache_write_tokens" bigint DEFAULT 0 NOT NULL,
	"output_tokens" bigint DEFAULT 0 NOT NULL,
	"reasoning_tokens" bigint DEFAULT 0 NOT NULL,
	"audio_ms" bigint DEFAULT 0 NOT NULL,
	"cost_nanos" bigint,
	"duration_ms" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "usage_hour_key" PRIMARY KEY("hour","user_id","key_id","kind","outcome","agent_id","model","upstream")
);
--> statement-breakpoint
CREATE TABLE "usage_record" (
	"id" uuid PRIMARY KEY NOT NULL,
	"batch_id" uuid NOT NULL,
	"ended_at" timestamp with time zone NOT NULL,
	"kind" text NOT NULL,
	"user_id" uuid,
	"key_id" uuid,
	"agent_id" uuid,
	"surface" text,
	"model" text NOT NULL,
	"requested_model" text,
	"upstream" text,
	"upstream_model" text,
	"outcome" text NOT NULL,
	"error_kind" text,
	"retries" integer DEFAULT 0 NOT NULL,
	"request_id" text NOT NULL,
	"response_id" text,
	"input_tokens" bigint DEFAULT 0 NOT NULL,
	"cached_tokens" bigint DEFAULT 0 NOT NULL,
	"cache_write_tokens" bigint DEFAULT 0 NOT NULL,
	"output_tokens" bigint DEFAULT 0 NOT NULL,
	"reasoning_tokens" bigint DEFAULT 0 NOT NULL,
	"estimated" boolean DEFAULT false NOT NULL,
	"audio_ms" bigint DEFAULT 0 NOT NULL,
	"cost_nanos" bigint,
	"queue_ms" integer,
	"first_event_ms" integer,
	"duration_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE INDEX "usage_hour_user" ON "usage_hour" USING btree ("user_id","hour");--> statement-breakpoint
CREATE INDEX "usage_record_user" ON "usage_record" USING btree ("user_id","id");