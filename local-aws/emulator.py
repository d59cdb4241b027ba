"""MiniStack, as strict as AWS in what the bus relies on.

Run by local-aws/ministack in its own virtual environment. Each difference is put right below, with the page of AWS that says how it
is; what is replaced must be there, so that another version of MiniStack fails at its start and not in silence.
"""

import contextvars
import json
import os
import re
import sys
import threading
import time

from ministack.app import main
from ministack.core import iam_evaluator
from ministack.services import lambda_svc, sns, sqs

ATTEMPT_LIFETIME = 300
MOST_HIDDEN = 43_200
ID = re.compile(r"^[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}$")

_attempt = contextvars.ContextVar("receive attempt", default=None)


def original(owner, name):
    """What is about to be replaced."""
    known = owner if isinstance(owner, dict) else vars(owner)
    if not callable(known.get(name)):
        sys.exit(f"MiniStack has no {name} any more: look at local-aws/emulator.py")
    return known[name]


def invalid(reason):
    return sqs._Err("InvalidParameterValue", reason)


# -- receiving ---------------------------------------------------------------------------------------------------------------

# ReceiveRequestAttemptId: for 5 minutes the same messages with the same handles, hidden anew, unless one of them was changed.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
collect_any = original(sqs, "_collect_msgs")
receive_any = original(sqs._HANDLERS, "ReceiveMessage")


def collect(queue, most, visibility):
    if not queue["is_fifo"]:
        return collect_any(queue, most, visibility)
    now, attempt = time.time(), _attempt.get()
    attempts = queue.setdefault("storybus_attempts", {})
    for name in [name for name, (ends, _) in attempts.items() if ends <= now]:
        del attempts[name]
    if attempt in attempts:
        _, received = attempts[attempt]
        here = {id(message) for message in queue["messages"]}
        if all(id(m) in here and m["receipt_handle"] == handle and m["visible_at"] == until and until > now
               for m, handle, until in received):
            for message, _, _ in received:
                message["visible_at"] = now + visibility
            messages = [message for message, _, _ in received]
            attempts[attempt] = (now + ATTEMPT_LIFETIME, remembered(messages))
            return messages
        del attempts[attempt]
    messages = collect_any(queue, most, visibility)
    handles = queue.setdefault("storybus_handles", {})
    for message in messages:
        handles[message["receipt_handle"]] = (message, now)
    if attempt is not None and messages:
        attempts[attempt] = (now + ATTEMPT_LIFETIME, remembered(messages))
    return messages


def remembered(messages):
    return [(message, message["receipt_handle"], message["visible_at"]) for message in messages]


async def receive(data, url):
    attempt = data.get("ReceiveRequestAttemptId")
    if attempt is not None and not ID.match(attempt):
        raise invalid("Value for parameter ReceiveRequestAttemptId is invalid.")
    token = _attempt.set(attempt)
    try:
        return await receive_any(data, url)
    finally:
        _attempt.reset(token)


sqs._collect_msgs = collect
sqs._HANDLERS["ReceiveMessage"] = receive


# -- receipt handles ---------------------------------------------------------------------------------------------------------

# A handle of a FIFO queue ends with its visibility; to delete what is deleted is done; no message is hidden for more than 12 hours
# from its receive.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html
delete_any = original(sqs._HANDLERS, "DeleteMessage")
delete_batch_any = original(sqs._HANDLERS, "DeleteMessageBatch")
change_any = original(sqs._HANDLERS, "ChangeMessageVisibility")
change_batch_any = original(sqs._HANDLERS, "ChangeMessageVisibilityBatch")
original(sqs, "_validate_batch_entries")


def held(queue, handle):
    """The message that a handle stands for, when it was received, and whether it is still there."""
    known = queue.get("storybus_handles", {}).get(handle)
    if known is None:
        raise sqs._Err("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
    message, received = known
    here = any(m is message for m in queue["messages"])
    if here and (message["receipt_handle"] != handle or message["visible_at"] <= time.time()):
        raise invalid(f"Value {handle} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.")
    return message, received, here


def delete_one(queue, entry):
    message, _, here = held(queue, entry.get("ReceiptHandle", ""))
    if here:
        queue["messages"] = [m for m in queue["messages"] if m is not message]


def change_one(queue, entry):
    handle, span = entry.get("ReceiptHandle", ""), int(entry.get("VisibilityTimeout", 30))
    message, received, here = held(queue, handle)
    if not here:
        raise invalid(f"Value {handle} for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not "
                      "available for visibility timeout change.")
    now = time.time()
    if now + span > received + MOST_HIDDEN + 1:
        raise invalid("Total VisibilityTimeout for the message is beyond the limit [43200 seconds]")
    message["visible_at"] = now + span
    sqs.esm_wake.set()


def single(action, one, otherwise):
    def handler(data, url):
        queue = sqs._get_q(data.get("QueueUrl", url), action)
        if not queue["is_fifo"]:
            return otherwise(data, url)
        one(queue, data)
        return {}
    return handler


def batch(action, one, entry_name, otherwise):
    def handler(data, url):
        queue = sqs._get_q(data.get("QueueUrl", url), action)
        if not queue["is_fifo"]:
            return otherwise(data, url)
        entries = data.get("Entries", [])
        sqs._validate_batch_entries(entries, entry_name)
        done, failed = [], []
        for entry in entries:
            try:
                one(queue, entry)
                done.append({"Id": entry["Id"]})
            except sqs._Err as e:
                failed.append({"Id": entry["Id"], "Code": e.code, "Message": e.message, "SenderFault": True})
        return {"Successful": done, "Failed": failed}
    return handler


sqs._HANDLERS["DeleteMessage"] = single("sqs:DeleteMessage", delete_one, delete_any)
sqs._HANDLERS["DeleteMessageBatch"] = batch("sqs:DeleteMessage", delete_one, "DeleteMessageBatchRequestEntry",
                                            delete_batch_any)
sqs._HANDLERS["ChangeMessageVisibility"] = single("sqs:ChangeMessageVisibility", change_one, change_any)
sqs._HANDLERS["ChangeMessageVisibilityBatch"] = batch("sqs:ChangeMessageVisibility", change_one,
                                                      "ChangeMessageVisibilityBatchRequestEntry", change_batch_any)


# -- sending -----------------------------------------------------------------------------------------------------------------

# Ids are of 128 characters at most; attributes count in a message's size, ten at most, none empty.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
send_any = original(sqs, "_act_send_message")
send_batch_any = original(sqs._HANDLERS, "SendMessageBatch")
size_of = original(sns, "_message_payload_size")


def check_attributes(attributes, fault):
    if len(attributes) > 10:
        raise fault(f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum [10].")
    for name, attribute in attributes.items():
        value = attribute.get("StringValue") or attribute.get("BinaryValue")
        if not value:
            raise fault(f"Message (user) attribute '{name}' must contain a non-empty value.")
        if sqs._INVALID_SQS_CHARS_RE.search(str(value)):
            raise fault(f"Message (user) attribute '{name}' value contains characters that are not allowed.")


def check_id(name, value, fault):
    if value is not None and not ID.match(value):
        raise fault(f"Value for parameter {name} is invalid. Reason: {name} can only include alphanumeric and punctuation "
                    "characters. 1 to 128 in length.")


def send(data, url):
    attributes = data.get("MessageAttributes") or {}
    check_attributes(attributes, invalid)
    check_id("MessageGroupId", data.get("MessageGroupId"), invalid)
    check_id("MessageDeduplicationId", data.get("MessageDeduplicationId"), invalid)
    if size_of(data.get("MessageBody", ""), attributes) > 1_048_576:
        raise invalid("One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes.")
    return send_any(data, url)


def send_batch(data, url):
    total = sum(size_of(e.get("MessageBody") or "", e.get("MessageAttributes") or {}) for e in data.get("Entries", []))
    if total > 1_048_576:
        raise sqs._Err("BatchRequestTooLong", f"Batch requests cannot be longer than 1048576 bytes. You have sent {total} bytes.")
    return send_batch_any(data, url)


# the batch sends each of its entries by this function
sqs._act_send_message = send
sqs._HANDLERS["SendMessage"] = send
sqs._HANDLERS["SendMessageBatch"] = send_batch


# -- topics ------------------------------------------------------------------------------------------------------------------

# Ids as in queues; size with attributes.
# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
publish_any = original(sns, "publish_internal")


# A topic's own policy may deny publications to everybody, whatever a role's allows.
# https://docs.aws.amazon.com/sns/latest/dg/sns-overview-of-managing-access.html
def is_closed(topic_arn):
    policy = (topic_of(topic_arn) or {}).get("attributes", {}).get("Policy") or "{}"
    return any(s["Effect"] == "Deny" and s["Principal"] == "*" and s["Action"] == "sns:Publish"
               for s in json.loads(policy).get("Statement", []))


def publish(topic_arn, message, subject="", **rest):
    def fault(reason):
        return sns.SnsPublishError("InvalidParameter", f"Invalid parameter: {reason}")
    if is_closed(topic_arn):
        raise sns.SnsPublishError("AuthorizationError", f"not authorized to perform: SNS:Publish on resource: {topic_arn}")
    if not message:
        raise fault("Empty message")
    for name, key in [("MessageGroupId", "message_group_id"), ("MessageDeduplicationId", "message_deduplication_id")]:
        check_id(name, rest.get(key) or None, fault)
    for name, attribute in (rest.get("message_attributes") or {}).items():
        if not (attribute.get("StringValue") or attribute.get("BinaryValue")):
            raise fault(f"The message attribute '{name}' must contain non-empty message attribute value")
    return publish_any(topic_arn, message, subject, **rest)


original(sns, "SnsPublishError")
sns.publish_internal = publish

# Every message of a FIFO queue has a sequence number, and a queue deduplicates what topics deliver as what is sent.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
# What a topic cannot deliver goes to the queue of the subscription's redrive policy; raw delivery takes ten attributes at most.
# https://docs.aws.amazon.com/sns/latest/dg/sns-dead-letter-queues.html
# https://docs.aws.amazon.com/sns/latest/dg/sns-message-attributes.html
deliver_any = original(sns, "_deliver_to_sqs")
topic_of = original(sns, "_topic_by_arn_any_scope")
queue_of = original(sqs, "_queue_by_arn")


def number(queue, message):
    queue["fifo_seq"] += 1
    message["seq"] = str(queue["fifo_seq"]).zfill(20)


def arrived(queue, count, group, name):
    """Puts right what the topic put into a FIFO queue that had `count` messages; says whether it is there."""
    if len(queue["messages"]) == count:
        return False
    message = queue["messages"][-1]
    if not queue["is_fifo"] or message.get("seq"):
        return True
    scope = queue["attributes"].get("DeduplicationScope", "queue")
    key = f"{group}:{name}" if scope == "messageGroup" else name
    sqs._prune_dedup(queue)
    if key in queue["dedup_cache"]:
        queue["messages"].pop()
        return True
    number(queue, message)
    message["dedup_cache_key"] = key
    queue["dedup_cache"][key] = {"expire": time.time() + 300, "id": message["id"], "md5": message.get("md5_body"),
                                 "md5a": message.get("md5_attrs"), "seq": message["seq"]}
    return True


def deliver(endpoint, envelope, raw, raw_message, message_group_id="", message_dedup_id="", message_attributes=None,
            topic_arn=""):
    def to(target):
        queue = queue_of(target)
        if queue is None:
            return False
        if raw and (len(message_attributes or {}) > 10 or sqs._INVALID_SQS_CHARS_RE.search(raw_message)):
            return False
        with sqs._queues_lock:  # nobody receives it before it is right
            count = len(queue["messages"])
            deliver_any(target, envelope, raw, raw_message, message_group_id, message_dedup_id, message_attributes, topic_arn)
            return arrived(queue, count, message_group_id, message_dedup_id)

    if to(endpoint):
        return
    for subscription in (topic_of(topic_arn) or {}).get("subscriptions", []):
        policy = subscription.get("attributes", {}).get("RedrivePolicy")
        if subscription.get("endpoint") == endpoint and policy:
            to(json.loads(policy)["deadLetterTargetArn"])


original(sqs, "_prune_dedup")
if not hasattr(sqs, "_queues_lock"):
    sys.exit("MiniStack has no _queues_lock any more: look at local-aws/emulator.py")
sqs._queues_lock = threading.RLock()  # Lambda's poller holds it while it receives, and sweeps meanwhile
sns._deliver_to_sqs = deliver


# -- dead letters ------------------------------------------------------------------------------------------------------------

# Moved to a FIFO queue of dead letters, a message has its message id for a deduplication id, and a new time of arrival.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/setting-up-dead-letter-queue-retention.html
sweep_any = original(sqs, "_dlq_sweep")


def sweep(queue):
    with sqs._queues_lock:
        sweep_alone(queue)


def sweep_alone(queue):
    policy = queue["attributes"].get("RedrivePolicy")
    target = queue_of(json.loads(policy).get("deadLetterTargetArn", "")) if policy else None
    count = len(target["messages"]) if target else 0
    sweep_any(queue)
    if target is None or not target["is_fifo"]:
        return
    now = time.time()
    for message in target["messages"][count:]:
        message["dedup_id"] = message["id"]
        message["sent_at"] = now
        message["sys"]["SentTimestamp"] = str(int(now * 1000))
        number(target, message)


sqs._dlq_sweep = sweep

# A function that is given a dead letter is told where it died.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
dispatch_any = original(lambda_svc, "_dispatch_esm_batch")
run_batch = original(lambda_svc, "_run_sqs_batch")


def dispatch(esm_id, run, *arguments):
    if run is run_batch:
        _, _, event, batch, *_ = arguments
        sources = {m["id"]: (m.get("sys") or {}).get("DeadLetterQueueSourceArn") for m in batch}
        for record in event["Records"]:
            if source := sources.get(record["messageId"]):
                record["attributes"]["DeadLetterQueueSourceArn"] = source
    return dispatch_any(esm_id, run, *arguments)


lambda_svc._dispatch_esm_batch = dispatch


# -- policies ----------------------------------------------------------------------------------------------------------------

# What each role asked for, and whether it may: the template's policies are compared with it.
RECORD = os.environ.get("STORYBUS_RECORD")
evaluate_any = original(iam_evaluator, "evaluate")
_recorded = set()

# A batch needs the permission of its single action; there is none of its own.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html
BATCHES = {f"sqs:{action}Batch": f"sqs:{action}" for action in ("SendMessage", "DeleteMessage", "ChangeMessageVisibility")}


def evaluate(context, policies, *limits):
    context.action = BATCHES.get(context.action, context.action)
    result = evaluate_any(context, policies, *limits)
    entry = json.dumps([context.principal_arn, context.action, context.resource_arn, result.decision])
    if RECORD and entry not in _recorded:
        _recorded.add(entry)
        with open(RECORD, "a") as file:
            file.write(entry + "\n")
    return result


iam_evaluator.evaluate = evaluate


if __name__ == "__main__":
    sys.argv = ["ministack"]
    main()
